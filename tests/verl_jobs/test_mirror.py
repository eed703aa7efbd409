"""Saves in an object store: what goes up arrives, and a training goes on from there in a bare folder. Against a folder, and slowly against S3."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from artifacts.hashing import hash_folder
from artifacts.manifest import NAME, Manifest
from artifacts.remote import put
from tests.artifacts.object_store import no_object_store, object_store
from tests.journeys.demo_run import wait_until
from tests.verl_jobs.saves import SHARD, a_save, save_as_verl, scored
from tests.verl_jobs.test_job import a_job
from verl_jobs import faults
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.trainer import trainer_lease as owner
from verl_jobs.trainer.callback import KEY, fetch
from verl_jobs.trainer.checkpoints import (
    SEAL,
    STATE,
    damage,
    repair,
    restored,
    steps_of,
    whole_saves,
)
from verl_jobs.trainer.remote_checkpoints import Mirror


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store("ratchet") as url:
        yield url


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        f"{request.getfixturevalue('bucket')}/{tmp_path.name}"
        if request.param == "s3"
        else str(tmp_path / "mirror")
    )


def in_bare_folder(job: TrainingJob, folder: Path) -> TrainingJob:
    moved = job.model_copy(update={"folder": str(folder)})
    moved.write()
    return moved


def test_a_training_goes_on_from_the_mirror_in_a_bare_folder(tmp_path: Path, url: str) -> None:
    job = a_job(
        tmp_path / "here",
        store=url,
        training=Training(kl_in="reward", kl_coefficient=0.1, kl_target=0.01),
    )
    job.path.mkdir()
    scored(job.path, {0: 0.2, 5: 0.5, 10: 0.4, 15: 0.3})
    save_as_verl(job, [5, 10, 15, 20], kl=0.07)
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 20 and damage(there.path / "saves" / "global_step_20") == ""
    assert hash_folder(there.path / "saves" / "global_step_20") == hash_folder(
        job.path / "saves" / "global_step_20"
    )
    assert (
        list(candidates(there.path)) == list(candidates(job.path)) == [5, 15, 20]
    )  # the last two, and the best
    assert (
        metrics(there.path) == metrics(job.path)
        and restored(there, 20).training.kl_coefficient == 0.07
    )
    assert faults.read(there.path) == [] == faults.read(job.path)


def test_the_mirror_keeps_what_the_policy_keeps(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10, 15, 20])
    there = in_bare_folder(job, tmp_path / "there")
    for _ in range(2):  # the newest copy is enough; without it the one before
        fetch(there)
        assert len(whole_saves(there.path / "saves")) == 1
        system, base = fsspec.core.url_to_fs(job.mirror)
        newest = whole_saves(there.path / "saves")[0]
        system.rm(f"{base}/saves/global_step_{newest}", recursive=True)
        shutil.rmtree(there.path / "saves")
    fetch(there)
    assert whole_saves(there.path / "saves") == []  # 15 and 20 were there, 5 and 10 were not


def test_a_damaged_copy_is_passed_over_for_the_one_before_and_told(
    tmp_path: Path, url: str
) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10])
    system, base = fsspec.core.url_to_fs(job.mirror)
    system.pipe_file(f"{base}/saves/global_step_10/{SHARD}", b"other bytes")
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 5
    assert [fault.what.split(" is damaged")[0] for fault in faults.read(there.path)] == [
        f"the copy of step 10 in {job.mirror}"
    ]


def test_a_copy_without_its_seal_does_not_count(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5])
    system, base = fsspec.core.url_to_fs(job.mirror)
    put(
        system,
        job.path / "saves" / "global_step_5" / "data.pt",
        f"{base}/saves/global_step_10/data.pt",
    )
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 5 and faults.read(there.path) == []


def test_what_lies_here_is_not_replaced_by_an_older_copy(tmp_path: Path, url: str) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5])
    a_save(job.path, 10)
    fetch(job)
    assert whole_saves(job.path / "saves") == [5, 10]


def test_a_save_that_is_damaged_here_gives_way_to_its_copy_and_is_told(
    tmp_path: Path, url: str
) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10])
    (job.path / "saves" / "global_step_10" / SHARD).write_bytes(b"other bytes")
    fetch(job)
    assert repair(job.path) == 10 and damage(job.path / "saves" / "global_step_10") == ""
    [fault] = faults.read(job.path)
    assert (
        fault.what.startswith(f"the save of step 10 is damaged: {SHARD} has 11 bytes")
        and job.mirror in fault.what
    )


def test_what_is_damaged_here_and_there_leaves_the_copies_before_it(
    tmp_path: Path, url: str
) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10, 15])
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    (there.path / "saves" / "global_step_15" / SHARD).write_bytes(b"other bytes")
    system, base = fsspec.core.url_to_fs(job.mirror)
    system.pipe_file(f"{base}/saves/global_step_15/{SHARD}", b"other bytes")
    fetch(there)
    assert repair(there.path) == 10


def test_after_a_restore_the_mirror_still_keeps_the_best_and_the_last_two(
    tmp_path: Path, url: str
) -> None:
    job = a_job(tmp_path / "here", store=url)
    job.path.mkdir()
    scored(job.path, {0: 0.2, 5: 0.5, 10: 0.4, 15: 0.3})
    save_as_verl(job, [5, 10, 15, 20])
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    save_as_verl(there, [25])
    assert steps_of(Mirror(job.mirror).sealed("saves", SEAL)) == [5, 20, 25]


def test_what_a_lost_life_left_in_the_mirror_is_replaced_by_the_one_that_goes_on(
    tmp_path: Path, url: str
) -> None:
    job, name = a_job(tmp_path / "here", store=url), "candidates/step-000010"
    save_as_verl(job, [5, 10])
    mirror = Mirror(job.mirror)
    mirror.drop("saves/global_step_10", SEAL)  # as a kill between the two uploads leaves it
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    mirror.push_bytes(b"a file that later weights do not have", f"{name}/old.bin")
    assert repair(there.path) == 5 and list(candidates(there.path)) == [5]
    callback = save_as_verl(there, [])
    callback.mirror = None  # a kill before its upload
    again = a_save(there.path, 10, whole=False)
    (again / "actor" / "huggingface" / "model.safetensors").write_bytes(b"other weights")
    callback.on_save(SimpleNamespace(), 10, str(again))
    save_as_verl(there, [15])
    mirror.pull(name, tmp_path / "pulled")
    assert (
        hash_folder(tmp_path / "pulled")
        == hash_folder(candidates(there.path)[10])
        == stated(tmp_path / "pulled")
    )
    assert (tmp_path / "pulled" / NAME).read_bytes() == (
        candidates(there.path)[10] / NAME
    ).read_bytes()


def stated(candidate: Path) -> str:
    return Manifest.model_validate_json((candidate / NAME).read_text()).content_hash


def test_a_copy_later_than_where_the_training_is_goes_with_the_life_that_made_it(
    tmp_path: Path, url: str
) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5, 10, 15])
    there = in_bare_folder(job, tmp_path / "there")
    system, base = fsspec.core.url_to_fs(job.mirror)
    system.pipe_file(f"{base}/saves/global_step_15/{SHARD}", b"other bytes")
    fetch(there)
    assert repair(there.path) == 10
    save_as_verl(there, [12])
    assert steps_of(Mirror(job.mirror).sealed("saves", SEAL)) == [10, 12]


def test_a_mirror_that_fails_is_told_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file is no folder")
    job = a_job(tmp_path / "here", store=str(tmp_path / "file" / "store"))
    save_as_verl(job, [5])
    [fault] = faults.read(job.path)
    assert "a save or its metrics did not reach" in fault.what and repair(job.path) == 5


@pytest.mark.slow
def test_an_object_store_that_does_not_answer_is_told_and_ends_nothing(tmp_path: Path) -> None:
    with no_object_store() as url:
        job = a_job(tmp_path / "here", store=url)
        save_as_verl(job, [5])
    [fault] = faults.read(job.path)
    assert "a save or its metrics did not reach" in fault.what and repair(job.path) == 5


def test_a_mirror_of_another_training_is_refused_in_one_line_and_nothing_is_taken(
    tmp_path: Path, url: str
) -> None:
    job, other = a_job(tmp_path / "here", store=url), a_job(tmp_path / "there", store=url, seed=2)
    assert job.mirror != other.mirror
    save_as_verl(job, [5])
    system, base = fsspec.core.url_to_fs(job.mirror)
    system.cp(base, other.mirror.removeprefix("s3://"), recursive=True)
    other.write()
    ended = subprocess.run(
        [sys.executable, "-m", "verl_jobs.trainer.entry", str(other.path / "job.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1 and len(ended.stderr.splitlines()) == 1, ended.stderr
    said = f"error: {other.mirror} holds what another training saved (its key is {job.key[:20]}, this one's {other.key[:20]}): move that away"
    assert (
        ended.stderr.startswith(said)
        and not (other.path / "saves").exists()
        and not (other.path / "candidates").exists()
    )


def test_copies_that_an_older_version_made_do_not_say_whose_they_are_and_are_found(
    tmp_path: Path, url: str
) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5])
    system, base = fsspec.core.url_to_fs(job.mirror)
    system.rm_file(f"{base}/{KEY}")
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 5


def test_metrics_that_verl_writes_during_the_upload_hold_no_save_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_job(tmp_path / "here", store=str(tmp_path / "mirror"))
    job.path.mkdir()
    scored(job.path, {0: 0.2})
    before = metrics(job.path)

    def writing(send: Callable[..., None]) -> Callable[..., None]:
        """Once, between the hash and the upload."""

        def sent(*args: Any, **kwargs: Any) -> None:
            if len(metrics(job.path)) == 1 and any(
                str(each).endswith("metrics-001.jsonl") for each in args
            ):
                with (job.path / "metrics-001.jsonl").open("a") as file:
                    file.write(json.dumps({"step": 5, "data": {"reward": 0.5}}) + "\n")
            send(*args, **kwargs)

        return sent

    for way in ("put_file", "pipe_file"):
        monkeypatch.setattr(LocalFileSystem, way, writing(getattr(LocalFileSystem, way)))
    save_as_verl(job, [5])
    assert len(metrics(job.path)) == 2 and faults.read(job.path) == []
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert repair(there.path) == 5 and metrics(there.path) == before


def test_metrics_that_cannot_be_copied_hold_no_save_back_and_are_told(tmp_path: Path) -> None:
    job = a_job(tmp_path / "here", store=str(tmp_path / "mirror"))
    job.path.mkdir()
    scored(job.path, {5: 0.5})
    (Path(job.mirror) / "metrics-001.jsonl" / "a folder in its place").mkdir(parents=True)
    save_as_verl(job, [5])
    [fault] = faults.read(job.path)
    shutil.rmtree(Path(job.mirror) / "metrics-001.jsonl")
    there = in_bare_folder(job, tmp_path / "there")
    fetch(there)
    assert "a save or its metrics did not reach" in fault.what and repair(there.path) == 5


def test_what_a_kill_left_half_written_here_gives_way_to_the_whole_copy(
    tmp_path: Path, url: str
) -> None:
    job = a_job(tmp_path / "here", store=url)
    save_as_verl(job, [5])
    there = in_bare_folder(job, tmp_path / "there")
    a_save(there.path, 5, whole=False)
    (there.path / "candidates" / "step-000005").mkdir(parents=True)
    (there.path / "candidates" / "step-000005" / "model.safetensors").write_bytes(b"half")
    fetch(there)
    assert repair(there.path) == 5 and list(candidates(there.path)) == [5]


def test_on_a_notice_verl_is_told_to_save_after_its_step_and_to_validate_no_more(
    tmp_path: Path,
) -> None:
    job = a_job(tmp_path)
    callback = save_as_verl(job, [5])
    assert (callback.config.trainer.save_freq, callback.config.trainer.test_freq) == (5, 5)
    owner.give_notice(tmp_path, "SIGTERM")
    assert (
        wait_until(lambda: callback.config.trainer.save_freq == 1, 60)
        and callback.config.trainer.test_freq == 5
    )
    callback.on_save(SimpleNamespace(), 7, str(a_save(tmp_path, 7, whole=False)))
    assert callback.config.trainer.test_freq == -1 and repair(tmp_path) == 7


def test_the_state_beside_verl_s_is_sealed_with_the_save(tmp_path: Path) -> None:
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
    from verl_jobs.trainer import early_stop as stopping
    from verl_jobs.trainer.replay_buffer import WatchedReplayBuffer

    job = a_job(tmp_path / "here", store=str(tmp_path / "mirror"))
    callback = save_as_verl(job, [])
    held, push = threading.Event(), callback._push
    monkeypatch.setattr(callback, "_push", lambda *told: (held.wait(60), push(*told)))
    callback.on_save(SimpleNamespace(), 5, str(a_save(job.path, 5, whole=False)))
    (job.path / "metrics-001.jsonl").write_text('{"step": 5, "data": {"actor/pg_loss": NaN}}\n')
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(job.path / "metrics-001.jsonl"))
    buffer = WatchedReplayBuffer.__new__(WatchedReplayBuffer)
    buffer.trainer = SimpleNamespace(checkpoint_callback=callback)
    threading.Timer(0.5, held.set).start()
    with pytest.raises(stopping.EarlyStop, match="actor/pg_loss is nan"):
        buffer.sample(6, "train", 1)
    assert Mirror(job.mirror).sealed("saves", SEAL) == ["global_step_5"]
