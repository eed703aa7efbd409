"""Lease and notice: whether a training should continue, and the request to end it.

The owner renews a lease in the training's folder. A notice in that folder asks the training to end.
It comes from SIGTERM, from a preempted pod (verl_jobs/trainer/preemption_hook.py), from a user who
cancels, or from an expired lease. The trainer then finishes its current step, saves, and ends
(verl_jobs/trainer/checkpoints.py). A mark in the holders' folder keeps a private Ray alive. All of
these are files, so owner and trainer share nothing but the training's folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.integrity import reading

NOTICE = "notice.json"
LEASE = "lease"
LOCK = "trainer.lock"
LEASE_S = 30.0  # a Dagster step that died is back within 16 s (docs/measurements)
RENEW_S = 3.0
STILL_S = 2.0
OWNED = "owned"  # argument of the training's command line: another process renews its lease
# folder where users of the private Ray register (resources/ray/head.py)
HOLDERS = "RATCHET_HOLDERS"


class TrainingEnded(Exception):
    """The training ends here with everything saved; the message is the reason."""


def give_notice(folder: Path, reason: str) -> None:
    """Ask the training in this folder to save and end; the first reason stays."""
    if not notice(folder):
        write_atomic(folder / NOTICE, json.dumps({"reason": reason, "at": time.time()}))


def notice(folder: Path) -> str:
    """Return the reason of the notice; empty without one."""
    path = folder / NOTICE
    if not path.exists():
        return ""
    with reading(path, "delete it; the training continues"):
        return str(json.loads(path.read_text(encoding="utf-8"))["reason"])


def withdraw_notice(folder: Path) -> None:
    """Remove the notice at the start of a new attempt."""
    (folder / NOTICE).unlink(missing_ok=True)


@contextmanager
def training_lock(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock and yield whether it was free.

    The kernel releases the lock when its holder dies.
    """
    with (folder / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def lock_holder(folder: Path) -> int | None:
    """Return the process of this machine that holds the folder's lock, without taking it.

    The kernel lists its locks in proc(5), `/proc/locks`; a lock that another machine or another pid
    namespace holds is not listed.
    """
    if not (folder / LOCK).exists():
        return None
    inode = str((folder / LOCK).stat().st_ino)
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        fields = line.split()
        if "->" not in fields and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
            return int(fields[4])
    return None


@contextmanager
def renewed_lease(folder: Path, every_s: float = RENEW_S) -> Iterator[None]:
    """Renew the training's lease in a background thread for the duration of the context."""
    stopped = threading.Event()

    def renew() -> None:
        count = 0
        while not stopped.is_set():
            overwrite(folder / LEASE, f"{os.getpid()} {count}")
            count += 1
            stopped.wait(every_s)

    thread = threading.Thread(target=renew, daemon=True, name="lease")
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def overwrite(path: Path, text: str) -> None:
    """Write a short text in one write, without truncation, padded with blanks.

    A truncated file would be empty until this thread runs again.
    """
    path.touch()
    with path.open("r+b", buffering=0) as file:
        file.write(text.ljust(40).encode("ascii"))


class Silence:
    """Seconds since the last sign of life.

    At most `still_s` is charged per check. If this process was paused (a machine or a container),
    the observed process was paused too.
    """

    def __init__(self, still_s: float = STILL_S) -> None:
        self._still_s, self._seconds, self._looked = still_s, 0.0, time.monotonic()

    def seconds(self, *, heard: bool) -> float:
        now = time.monotonic()
        self._seconds = 0.0 if heard else self._seconds + min(now - self._looked, self._still_s)
        self._looked = now
        return self._seconds


class Deadline:
    """The end of a wait, which calls `passed` at least every `still_s`.

    A pause of this process does not count as waiting.
    """

    def __init__(self, seconds: float, still_s: float = STILL_S) -> None:
        self._seconds, self._waited = seconds, Silence(still_s)

    def passed(self) -> bool:
        return self._waited.seconds(heard=False) > self._seconds


class Lease:
    """The lease as the training sees it.

    It compares contents and uses only its own clock, because the clocks of two machines may differ.
    A lease that does not exist never expires.
    """

    def __init__(self, folder: Path, term_s: float = LEASE_S) -> None:
        self.path, self.term_s = folder / LEASE, term_s
        self._seen, self._silence = self._read(), Silence()

    def expired(self) -> bool:
        """Whether the lease has not been renewed for its term."""
        before, self._seen = self._seen, self._read()
        return (
            self._silence.seconds(heard=self._seen != before) > self.term_s
            and self._seen is not None
        )

    def _read(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None


def register_holder(holders: Path) -> None:
    """Register this process as a user of a private Ray.

    When it ends, for whatever reason, so does its registration.
    """
    write_atomic(holders / str(os.getpid()), start_time(os.getpid()))


def start_time(pid: int) -> str:
    """Return a process's start time in ticks since boot (proc(5)).

    Unlike the time of day, which may be set, it never changes. Raises FileNotFoundError or
    ProcessLookupError if there is no such process.
    """
    return (
        Path(f"/proc/{pid}/stat")
        .read_text(encoding="utf-8", errors="replace")
        .rpartition(")")[2]
        .split()[19]
    )
