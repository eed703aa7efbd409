"""Checkpoints in a mirror, a folder or S3, from which a training resumes in an empty folder."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from artifacts.folder import Folder
from artifacts.hashing import MANIFEST, hash_folder
from artifacts.manifest import Manifest
from tests.artifacts.object_store import no_object_store, object_store
from tests.children import python
from tests.journeys.demo_run import wait_until
from tests.verl_jobs.saves import SHARD, a_save, save_as_verl, scored
from tests.verl_jobs.test_job import a_job
from verl_jobs import faults
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.trainer import trainer_lease
from verl_jobs.trainer.callback import fetch
from verl_jobs.trainer.checkpoints import (
    SEAL,
    STATE,
    complete_saves,
    damage,
    repair,
    restore_settings,
    steps_of,
)
from verl_jobs.trainer.remote_checkpoints import Mirror


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store("ratchet") as url:
        yield url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "mirror")


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def any_url(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> str:
    """Return a place of each kind, for the tests that write, list, replace and remove copies."""
    return f"{request.getfixturevalue('bucket')}/{tmp_path.name}" if request.param == "s3" else url


def in_bare_folder(job: TrainingJob, folder: Path) -> TrainingJob:
    moved = job.model_copy(update={"folder": str(folder)})
    moved.write()
    return moved


def test_a_training_resumes_from_the_mirror_in_an_empty_folder(
    tmp_path: Path, any_url: str
) -> None:
    job = a_job(
        tmp_path / "here",
        store=any_url,
        training=Training(kl_in="reward", kl_coefficient=0.1, kl_target=0.01),
    )
    job.path.mkdir()
    scored(job.path, {0: 0.2, 5: 0.5, 10: 0.4, 15: 0.3})
    save_as_verl(job, [5, 10, 15, 20], kl=0.07)
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 20
    assert damage(there.path / "saves" / "global_step_20") == ""
    assert hash_folder(there.path / "saves" / "global_step_20") == hash_folder(
        job.path / "saves" / "global_step_20"
    )
    assert (
        list(candidates(there.path)) == list(candidates(job.path)) == [5, 15, 20]
    )  # the last two, and the best
    assert metrics(there.path) == metrics(job.path)
    assert restore_settings(there, 20).training.kl_coefficient == 0.07
    assert faults.read(there.path) == [] == faults.read(job.path)


def test_the_mirror_follows_the_retention_policy(tmp_path: Path, any_url: str) -> None:
    job = a_job(tmp_path / "here", store=any_url)
    save_as_verl(job, [5, 10, 15, 20])
    there = in_bare_folder(job, tmp_path / "there")
    for _ in range(2):  # the newest copy is enough, or the one before it
        fetch(there)
        assert len(complete_saves(there.path / "saves")) == 1
        newest = complete_saves(there.path / "saves")[0]
        Folder(job.mirror).remove(f"saves/global_step_{newest}")
        shutil.rmtree(there.path / "saves")
    fetch(there)
    assert complete_saves(there.path / "saves") == []  # only 15 and 20 were there


def test_a_damaged_copy_is_skipped_and_recorded_in_faults(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10])
    Folder(job.mirror).write(f"saves/global_step_10/{SHARD}", b"other bytes")
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 5
    [fault] = faults.read(there.path)
    assert "step 10" in fault.what
    assert job.mirror in fault.what


def test_a_copy_without_its_seal_is_ignored(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5])
    Folder(job.mirror).put(
        job.path / "saves" / "global_step_5" / "data.pt", "saves/global_step_10/data.pt"
    )
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 5
    assert faults.read(there.path) == []


def test_a_newer_local_checkpoint_is_not_replaced(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5])
    a_save(job.path, 10)
    fetch(job)
    assert complete_saves(job.path / "saves") == [5, 10]


def test_a_damaged_local_checkpoint_is_replaced_by_its_copy(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10])
    (job.path / "saves" / "global_step_10" / SHARD).write_bytes(b"other bytes")
    fetch(job)
    assert repair(job.path) == 10
    assert damage(job.path / "saves" / "global_step_10") == ""
    [fault] = faults.read(job.path)
    assert f"step 10 is damaged: {SHARD} has 11 bytes" in fault.what
    assert job.mirror in fault.what


def test_damage_on_both_sides_falls_back_to_an_earlier_copy(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10, 15])
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    (there.path / "saves" / "global_step_15" / SHARD).write_bytes(b"other bytes")
    Folder(job.mirror).write(f"saves/global_step_15/{SHARD}", b"other bytes")
    fetch(there)
    assert repair(there.path) == 10


def test_after_a_restore_the_mirror_follows_the_retention_policy(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    job.path.mkdir()
    scored(job.path, {0: 0.2, 5: 0.5, 10: 0.4, 15: 0.3})
    save_as_verl(job, [5, 10, 15, 20])
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    save_as_verl(there, [25])
    assert steps_of(Mirror(job.mirror).sealed("saves", SEAL)) == [5, 20, 25]


def test_a_resumed_training_replaces_copies_of_the_lost_attempt(
    tmp_path: Path, any_url: str
) -> None:
    job, name = a_job(tmp_path / "here", store=any_url), "candidates/step-000010"
    save_as_verl(job, [5, 10])
    mirror = Mirror(job.mirror)
    mirror.drop("saves/global_step_10", SEAL)  # as after a kill between the two uploads
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    mirror.push_bytes(b"a file that later weights do not have", f"{name}/old.bin")
    assert repair(there.path) == 5
    assert list(candidates(there.path)) == [5]
    callback = save_as_verl(there, [])
    callback.mirror = None  # killed before its upload
    again = a_save(there.path, 10, whole=False)
    (again / "actor" / "huggingface" / "model.safetensors").write_bytes(b"other weights")
    callback.on_save(SimpleNamespace(), 10, str(again))
    callback.await_save()
    save_as_verl(there, [15])
    mirror.pull(name, tmp_path / "pulled")
    assert (
        hash_folder(tmp_path / "pulled")
        == hash_folder(candidates(there.path)[10])
        == stated(tmp_path / "pulled")
    )
    assert (tmp_path / "pulled" / MANIFEST).read_bytes() == (
        candidates(there.path)[10] / MANIFEST
    ).read_bytes()


def stated(candidate: Path) -> str:
    return Manifest.model_validate_json((candidate / MANIFEST).read_text()).content_hash


def test_copies_later_than_the_resumed_step_are_removed(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10, 15])
    there = in_bare_folder(job, tmp_path / "there")
    Folder(job.mirror).write(f"saves/global_step_15/{SHARD}", b"other bytes")
    fetch(there)
    assert repair(there.path) == 10
    save_as_verl(there, [12])
    assert steps_of(Mirror(job.mirror).sealed("saves", SEAL)) == [10, 12]


def test_a_failing_mirror_is_recorded_and_training_continues(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    job = a_job(tmp_path / "here", store=str(tmp_path / "file" / "store"))
    save_as_verl(job, [5])
    [fault] = faults.read(job.path)
    assert job.mirror in fault.what
    assert repair(job.path) == 5


@pytest.mark.slow
def test_an_unreachable_object_store_is_recorded_and_training_continues(tmp_path: Path) -> None:
    with no_object_store() as url:
        job = a_job(tmp_path / "here", store=url)
        save_as_verl(job, [5])
    [fault] = faults.read(job.path)
    assert job.mirror in fault.what
    assert repair(job.path) == 5


@pytest.mark.slow
def test_the_mirror_of_another_training_is_refused(tmp_path: Path, url: str) -> None:
    job, other = a_job(tmp_path / "here", store=url), a_job(tmp_path / "there", store=url, seed=2)
    assert job.mirror != other.mirror
    save_as_verl(job, [5])
    system, base = fsspec.core.url_to_fs(job.mirror)
    system.cp(base, other.mirror.removeprefix("s3://"), recursive=True)
    other.write()
    ended = python("-m", "verl_jobs.trainer.entry", str(other.path / "job.json"))
    assert ended.returncode == 1, ended.stderr
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert ended.stderr.startswith(f"error: {other.mirror} ")
    assert job.key[:20] in ended.stderr
    assert other.key[:20] in ended.stderr
    assert not (other.path / "saves").exists()
    assert not (other.path / "candidates").exists()


def test_metrics_written_during_the_upload_do_not_block_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_job(tmp_path / "here", store=str(tmp_path / "mirror"))
    job.path.mkdir()
    scored(job.path, {0: 0.2})
    before = metrics(job.path)

    def writing(send: Callable[..., None]) -> Callable[..., None]:
        """Append a step once, between the hash and the upload."""

        def sent(*args: Any, **kwargs: Any) -> None:
            if len(metrics(job.path)) == 1 and any(
                "metrics-001.jsonl" in str(each) for each in args
            ):
                with (job.path / "metrics-001.jsonl").open("a") as file:
                    file.write(json.dumps({"step": 5, "data": {"reward": 0.5}}) + "\n")
            send(*args, **kwargs)

        return sent

    for way in ("put_file", "pipe_file"):
        monkeypatch.setattr(LocalFileSystem, way, writing(getattr(LocalFileSystem, way)))
    save_as_verl(job, [5])
    assert len(metrics(job.path)) == 2
    assert faults.read(job.path) == []
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 5
    assert metrics(there.path) == before


def test_metrics_that_cannot_be_copied_do_not_block_a_checkpoint(tmp_path: Path) -> None:
    job = a_job(tmp_path / "here", store=str(tmp_path / "mirror"))
    job.path.mkdir()
    scored(job.path, {5: 0.5})
    (Path(job.mirror) / "metrics-001.jsonl" / "folder").mkdir(parents=True)
    save_as_verl(job, [5])
    [fault] = faults.read(job.path)
    shutil.rmtree(Path(job.mirror) / "metrics-001.jsonl")
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert job.mirror in fault.what
    assert repair(there.path) == 5


def test_half_written_local_files_are_replaced_by_the_copy(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5])
    there = in_bare_folder(job, tmp_path / "there")
    a_save(there.path, 5, whole=False)
    (there.path / "candidates" / "step-000005").mkdir(parents=True)
    (there.path / "candidates" / "step-000005" / "model.safetensors").write_bytes(b"half")
    fetch(there)
    assert repair(there.path) == 5
    assert list(candidates(there.path)) == [5]


def test_on_a_notice_verl_saves_after_its_step_without_validation(
    tmp_path: Path,
) -> None:
    job = a_job(tmp_path)
    callback = save_as_verl(job, [5])
    assert (callback.config.trainer.save_freq, callback.config.trainer.test_freq) == (5, 5)
    trainer_lease.give_notice(tmp_path, "SIGTERM")
    assert wait_until(lambda: callback.config.trainer.save_freq == 1, 60)
    assert callback.config.trainer.test_freq == 5
    callback.on_save(SimpleNamespace(), 7, str(a_save(tmp_path, 7, whole=False)))
    assert callback.config.trainer.test_freq == -1
    assert repair(tmp_path) == 7


def test_our_state_is_sealed_with_the_checkpoint(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    save_as_verl(job, [5], kl=0.3)
    save = tmp_path / "saves" / "global_step_5"
    assert damage(save) == ""
    (save / STATE).unlink()
    assert damage(save) == f"{STATE} is missing"


@pytest.mark.slow  # importing verl takes longer than all of this
def test_a_training_that_stops_early_waits_for_its_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verl_jobs.trainer import early_stop
    from verl_jobs.trainer.replay_buffer import WatchedReplayBuffer

    job = a_job(tmp_path / "here", store=str(tmp_path / "mirror"))
    callback = save_as_verl(job, [])
    released, push = threading.Event(), callback._push
    monkeypatch.setattr(callback, "_push", lambda *args: (released.wait(60), push(*args)))
    callback.on_save(SimpleNamespace(), 5, str(a_save(job.path, 5, whole=False)))
    (job.path / "metrics-001.jsonl").write_text('{"step": 5, "data": {"actor/pg_loss": NaN}}\n')
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(job.path / "metrics-001.jsonl"))
    buffer = WatchedReplayBuffer.__new__(WatchedReplayBuffer)
    buffer.step = 5
    buffer.trainer = SimpleNamespace(checkpoint_callback=callback)
    threading.Timer(0.5, released.set).start()
    with pytest.raises(early_stop.EarlyStop, match=r"actor/pg_loss.* nan"):
        buffer.sample(6, "train", 1)
    assert Mirror(job.mirror).sealed("saves", SEAL) == ["global_step_5"]
