"""The preemption hook of a pod, with processes in place of Ray's.

tests/resources/test_two_nodes.py uses Ray's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from verl_jobs.trainer.preemption_hook import TRAINING, main
from verl_jobs.trainer.trainer_lease import notice


@contextmanager
def worker(folder: Path, seconds: float = 60.0) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that belongs to the training in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    code = f"import time; print(1, flush=True); time.sleep({seconds})"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env=os.environ | {TRAINING: str(folder)},
    ) as process:
        assert process.stdout
        assert process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_the_hook_notifies_trainings_and_waits_for_them(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with (
        worker(home / "here") as first,
        worker(home / "here") as second,
        worker(tmp_path / "another home"),
    ):
        for process in (first, second):
            threading.Timer(2.0, process.kill).start()
        began = time.monotonic()
        main(home)
        assert 1.5 < time.monotonic() - began < 30
    assert notice(home / "here") != ""
    assert notice(tmp_path / "another home") == ""


@pytest.mark.slow
def test_the_hook_waits_at_most_its_grace_period(
    tmp_path: Path,
) -> None:
    with worker(tmp_path / "slow"):
        began = time.monotonic()
        main(tmp_path, stays_s=1.0)
        assert time.monotonic() - began < 20


def test_the_hook_ignores_trainings_whose_folder_is_gone(
    tmp_path: Path,
) -> None:
    with worker(tmp_path / "removed"):
        (tmp_path / "removed").rmdir()
        main(tmp_path)
    assert not list(tmp_path.iterdir())
