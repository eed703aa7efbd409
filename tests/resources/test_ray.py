"""The private Ray: who holds it, and what is told of a training that ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

import resources.ray.private
from resources.ray.head import HOLDERS, LOOPBACK, free_ports, live_holders
from resources.ray.job import MOVED, _died, _last_words, train
from resources.ray.private import Joined, TrainingFailed, _spawn, _token
from tests.journeys.chain import wait_until
from tests.verl_jobs.test_job import a_job
from verl_jobs.config.training import Training
from verl_jobs.trainer.trainer_lease import register_holder, start_time


def test_a_holder_counts_while_it_lives(tmp_path: Path) -> None:
    register_holder(tmp_path / HOLDERS)
    assert live_holders(tmp_path) == [os.getpid()]


def test_a_process_number_that_is_used_again_is_not_the_holder(tmp_path: Path) -> None:
    (tmp_path / "holders").mkdir()
    (tmp_path / "holders" / str(os.getpid())).write_text(str(int(start_time(os.getpid())) - 1))
    assert live_holders(tmp_path) == []


def test_a_holder_that_was_killed_is_forgotten(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from verl_jobs.trainer.trainer_lease import register_holder\n"
        "register_holder(Path(sys.argv[1]) / 'holders'); print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout and holder.stdout.readline()
        assert live_holders(tmp_path) == [holder.pid]
        holder.kill()
    assert live_holders(tmp_path) == []
    assert list((tmp_path / "holders").iterdir()) == []


WATCHES = (
    "import subprocess, sys; from pathlib import Path; from resources.ray import head as ray_head\n"
    "ray_head.GRACE_S = 3.0; print(1, flush=True)\n"
    "with subprocess.Popen(['sleep', '60']) as ray:\n"
    "    ray_head.watch(Path(sys.argv[1]), ray); ray.kill()"
)


@pytest.mark.slow
def test_a_head_that_stood_still_has_not_missed_its_holders(tmp_path: Path) -> None:
    """A container that is paused, a machine that is moved: all of its processes stood still."""
    register_holder(tmp_path / HOLDERS)
    with subprocess.Popen(
        [sys.executable, "-c", WATCHES, str(tmp_path)], stdout=subprocess.PIPE
    ) as head:
        assert head.stdout and head.stdout.readline()
        time.sleep(0.5)
        head.send_signal(signal.SIGSTOP)
        time.sleep(4)
        head.send_signal(signal.SIGCONT)
        time.sleep(1)
        assert head.poll() is None
        (tmp_path / HOLDERS / str(os.getpid())).unlink()
        assert head.wait(20) == 0


def test_a_mark_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / HOLDERS).mkdir()
    beside = (
        tmp_path / HOLDERS / ".4711.draft"
    )  # as artifacts.store.write_atomic has it before it is renamed
    beside.touch()
    assert live_holders(tmp_path) == []
    assert beside.exists()


@pytest.mark.parametrize(("engine", "seen"), [("hf", None), ("vllm", "3")])
def test_a_private_ray_keeps_to_the_gpus_that_its_user_chose(
    engine: Literal["hf", "vllm"], seen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU they are places for ranks, which are as many as the training has."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("RAY_ADDRESS", "another:6379")
    environments: list[dict[str, str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, env, **_: environments.append(env))
    _spawn(tmp_path, a_job(tmp_path, training=Training(engine=engine)), LOOPBACK, 1)
    assert (
        environments[0].get("CUDA_VISIBLE_DEVICES") == seen and "RAY_ADDRESS" not in environments[0]
    )


def test_ports_are_free_and_different() -> None:
    assert len(set(free_ports(8))) == 8


def test_the_token_is_made_once_and_is_the_users_alone(tmp_path: Path) -> None:
    first = _token(tmp_path).read_text()
    assert _token(tmp_path).read_text() == first
    assert _token(tmp_path).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("code", "died"), [(None, True), (-9, True), (137, True), (75, True), (1, False), (2, False)]
)
def test_a_death_is_told_from_an_error(code: int | None, died: bool) -> None:
    assert _died(SimpleNamespace(driver_exit_code=code)) is died


def test_a_training_that_never_began_is_not_moved_when_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cluster went away between the command line's look at it and the submission."""
    monkeypatch.setattr(resources.ray.private, "PATIENCE_S", 0.1)
    job = a_job(tmp_path / "job")
    joined = Joined("http://127.0.0.1:9", job, 0.1, lambda: pytest.fail("it was to go on here"))
    for _ in range(2):
        with pytest.raises(TrainingFailed, match="no Ray answers at"):
            train(job, joined, entry="toy_training")
    assert not (job.path / MOVED).exists()


def test_the_last_words_are_the_error_and_not_the_noise_after_it(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    log.write_text("starting\n\x1b[36mValueError:\x1b[39m batch 7 is too small\n\nshutting down\n")
    assert _last_words(log) == "ValueError: batch 7 is too small"
    assert _last_words(tmp_path / "absent.log") == "it left no log"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_ray_stays_up_where_the_environment_lies_in_a_path_with_spaces(tmp_path: Path) -> None:
    (tmp_path / "an environment").symlink_to(sys.prefix)
    interpreter = tmp_path / "an environment" / Path(sys.executable).relative_to(sys.prefix)
    folder = tmp_path / "ray"
    folder.mkdir()
    register_holder(folder / HOLDERS)
    environment = os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(_token(folder)),
    }
    with (folder / "head.log").open("w") as log:
        head = subprocess.Popen(
            [interpreter, "-m", "resources.ray.head", str(folder)],
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        assert wait_until(lambda: (folder / "head.json").exists() or head.poll() is not None, 90)
        assert not wait_until(lambda: head.poll() is not None, 5), (folder / "head.log").read_text()
    finally:
        for holder in (folder / "holders").iterdir():
            holder.unlink()
        head.wait(60)
