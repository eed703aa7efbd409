"""The private Ray: its holders, its GPUs, its token, and the end of a training."""

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
from resources.ray.end import DEAD, died, end_of, last_error
from resources.ray.head import HOLDERS, LOOPBACK, PRELOADED, free_ports, live_holders
from resources.ray.job import MOVED, train
from resources.ray.private import RUN, Joined, TrainingFailed, _spawn, _token
from tests.journeys.demo_run import wait_until
from tests.verl_jobs.test_job import a_job
from verl_jobs.config.training import Training
from verl_jobs.trainer.trainer_lease import register_holder, start_time

# As Ray 2.60 says it, in a job's message and in the trainer's log.
SHORT = (
    "1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: "
    "127.0.0.1, ID: 46df2221d3a509d724afc8ec7701b3a2a027f764126e58ec4b6a9359) was 22.40GB used / "
    "23.54GB limit (0.951572)"
)


def test_a_live_holder_counts(tmp_path: Path) -> None:
    register_holder(tmp_path / HOLDERS)
    assert live_holders(tmp_path) == [os.getpid()]


def test_a_reused_process_id_is_not_the_holder(tmp_path: Path) -> None:
    (tmp_path / "holders").mkdir()
    (tmp_path / "holders" / str(os.getpid())).write_text(str(int(start_time(os.getpid())) - 1))
    assert live_holders(tmp_path) == []


def test_a_killed_holder_is_removed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from verl_jobs.trainer.trainer_lease import register_holder\n"
        "register_holder(Path(sys.argv[1]) / 'holders'); print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline()
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
def test_a_suspended_head_keeps_its_holders(tmp_path: Path) -> None:
    """All processes of a machine stop when its container is paused or the machine is moved."""
    register_holder(tmp_path / HOLDERS)
    with subprocess.Popen(
        [sys.executable, "-c", WATCHES, str(tmp_path)], stdout=subprocess.PIPE
    ) as head:
        assert head.stdout
        assert head.stdout.readline()
        time.sleep(0.5)
        head.send_signal(signal.SIGSTOP)
        time.sleep(4)
        head.send_signal(signal.SIGCONT)
        time.sleep(1)
        assert head.poll() is None
        (tmp_path / HOLDERS / str(os.getpid())).unlink()
        assert head.wait(120) == 0


def test_an_unfinished_holder_file_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / HOLDERS).mkdir()
    # artifacts.store.write_atomic writes such a file before it renames it.
    draft = tmp_path / HOLDERS / ".4711.draft"
    draft.touch()
    assert live_holders(tmp_path) == []
    assert draft.exists()


@pytest.mark.parametrize(("engine", "seen"), [("hf", None), ("vllm", "3")])
def test_a_private_ray_uses_only_the_visible_gpus(
    engine: Literal["hf", "vllm"], seen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On CPUs, Ray's GPUs are slots for ranks, so the visible GPUs do not limit them."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("RAY_ADDRESS", "another:6379")
    environments: list[dict[str, str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, env, **_: environments.append(env))
    _spawn(tmp_path, a_job(tmp_path, training=Training(engine=engine)), LOOPBACK, 1)
    assert environments[0].get("CUDA_VISIBLE_DEVICES") == seen
    assert "RAY_ADDRESS" not in environments[0]


def test_a_private_rays_environment_names_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments: list[dict[str, str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, env, **_: environments.append(env))
    job = a_job(tmp_path / "runs" / "study-a" / "training" / "key")
    _spawn(tmp_path, job, LOOPBACK, 1)
    assert environments[0][RUN] == str(tmp_path / "runs" / "study-a")


def test_ports_are_free_and_different() -> None:
    assert len(set(free_ports(8))) == 8


def test_the_token_is_created_once_and_private(tmp_path: Path) -> None:
    first = _token(tmp_path).read_text()
    assert _token(tmp_path).read_text() == first
    assert _token(tmp_path).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("code", "dead"), [(None, True), (-9, True), (137, True), (75, True), (1, False), (2, False)]
)
def test_a_dead_driver_differs_from_a_failed_one(code: int | None, dead: bool) -> None:
    assert died(code) is dead


def test_a_lack_of_memory_is_a_death_with_its_reason(tmp_path: Path) -> None:
    """Whether Ray ended the trainer, or a process whose end the trainer reports."""
    log = tmp_path / "trainer.log"
    log.write_text(f"starting\nray.exceptions.OutOfMemoryError: {SHORT}\n")
    supervisor = SimpleNamespace(message=f"Unexpected error occurred: {SHORT}")
    trainer = SimpleNamespace(message="Job entrypoint command failed with exit code 1")
    for info, code, file in ((supervisor, None, tmp_path / "absent.log"), (trainer, 1, log)):
        info.driver_exit_code = code
        end = end_of(info, file)
        assert (end.status, end.memory) == (DEAD, True)
        assert "22.40GB of 23.54GB were in use" in end.cause


@pytest.mark.slow
def test_a_training_that_never_started_is_not_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster disappears between the check of the command line and the submission."""
    monkeypatch.setattr(resources.ray.private, "PATIENCE_S", 0.1)
    job = a_job(tmp_path / "job")
    joined = Joined(
        "http://127.0.0.1:9", job, 0.1, lambda: pytest.fail("the training moved to this machine")
    )
    for _ in range(2):
        with pytest.raises(TrainingFailed, match=r"http://127.0.0.1:9"):
            train(job, joined, entry="toy_training")
    assert not (job.path / MOVED).exists()


def test_the_last_error_of_a_log_is_extracted(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    log.write_text("starting\n\x1b[36mValueError:\x1b[39m batch 7 is too small\n\nshutting down\n")
    assert last_error(log) == "ValueError: batch 7 is too small"
    assert "no log" in last_error(tmp_path / "absent.log")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ray_runs_from_an_environment_path_with_spaces(tmp_path: Path) -> None:
    (tmp_path / "an environment").symlink_to(sys.prefix)
    interpreter = tmp_path / "an environment" / Path(sys.executable).relative_to(sys.prefix)
    folder = tmp_path / "ray"
    folder.mkdir()
    register_holder(folder / HOLDERS)
    environment = os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(_token(folder)),
        PRELOADED: "",
    }
    with (folder / "head.log").open("w") as log:
        head = subprocess.Popen(
            [interpreter, "-m", "resources.ray.head", str(folder)],
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        assert wait_until(lambda: (folder / "head.json").exists() or head.poll() is not None, 280)
        assert not wait_until(lambda: head.poll() is not None, 5), (folder / "head.log").read_text()
    finally:
        for holder in (folder / "holders").iterdir():
            holder.unlink()
        head.wait(280)
