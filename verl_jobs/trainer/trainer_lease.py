"""Who wants a training to go on, and how it is asked to end: a lease that its owner renews, a notice in its folder, a holder's mark at its Ray.

A notice comes from SIGTERM, from a pod that is taken back (verl_jobs/trainer/preemption_hook.py), from a person who cancels, or from a lease that nobody renewed.
The trainer then finishes the step that it is in, saves, and ends (verl_jobs/trainer/checkpoints.py). All of it lies in files, so that owner and trainer need no
way to each other but the training's folder.
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

from artifacts.store import write_atomic

NOTICE = "notice.json"
LEASE = "lease"
LOCK = "trainer.lock"
LEASE_S = 30.0  # a Dagster step that died is back within 16 s (docs/measurements)
RENEW_S = 3.0
STILL_S = 2.0
OWNED = "owned"  # to the training's command line: somebody renews its lease
HOLDERS = "RATCHET_HOLDERS"  # where a process of the private Ray says that it needs it (resources/ray/head.py)


class Ended(Exception):
    """The training ends here, all of it saved; the message is why."""


def give_notice(folder: Path, reason: str) -> None:
    """Asks the training in this folder to save and to end; the first reason stays."""
    if not notice(folder):
        write_atomic(folder / NOTICE, json.dumps({"reason": reason, "at": time.time()}))


def notice(folder: Path) -> str:
    """Why the training was asked to end; empty where it was not."""
    path = folder / NOTICE
    return str(json.loads(path.read_text(encoding="utf-8"))["reason"]) if path.exists() else ""


def withdraw_notice(folder: Path) -> None:
    """A new life of the training begins: what ended the last one is past."""
    (folder / NOTICE).unlink(missing_ok=True)


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Whether nobody else trains in this folder, and nobody else will while in here: the kernel's lock decides, and is free when its holder dies."""
    with (folder / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def owned(folder: Path, every_s: float = RENEW_S) -> Iterator[None]:
    """While in here, this process renews the training's lease, whatever else it does."""
    left = threading.Event()

    def renew() -> None:
        count = 0
        while not left.is_set():
            _renew(folder / LEASE, count)
            count += 1
            left.wait(every_s)

    thread = threading.Thread(target=renew, daemon=True, name="lease")
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def _renew(lease: Path, count: int) -> None:
    """In one write and over what is there: emptied first, it would be empty for as long as this thread waits for its turn between the two."""
    lease.touch()
    with lease.open("r+b", buffering=0) as file:
        file.write(f"{os.getpid()} {count}".ljust(40).encode("ascii"))


class Silence:
    """How long nothing was heard, by somebody who looks often. Between two looks no more than STILL_S count: where this process stood still (a
    machine or a container that was paused), so did those whom it would have heard."""

    def __init__(self) -> None:
        self._seconds, self._looked = 0.0, time.monotonic()

    def seconds(self, *, heard: bool) -> float:
        now = time.monotonic()
        self._seconds = 0.0 if heard else self._seconds + min(now - self._looked, STILL_S)
        self._looked = now
        return self._seconds


class Lease:
    """The lease as the training sees it. It looks for changes and asks its own clock alone: those of two machines may differ.

    One that does not exist never expires.
    """

    def __init__(self, folder: Path, term_s: float = LEASE_S) -> None:
        self.path, self.term_s = folder / LEASE, term_s
        self._seen, self._silence = self._read(), Silence()

    def expired(self) -> bool:
        """Whether nobody has renewed it for its term."""
        before, self._seen = self._seen, self._read()
        return (
            self._silence.seconds(heard=self._seen != before) > self.term_s
            and self._seen is not None
        )

    def _read(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None


def hold(holders: Path) -> None:
    """Makes this process a holder of a private Ray; its end, however it comes, is the end of that."""
    write_atomic(holders / str(os.getpid()), started(os.getpid()))


def started(pid: int) -> str:
    """When a process was started, in ticks since the machine was (proc(5)): unlike the time of day, which may be set, always the same.

    Raises FileNotFoundError or ProcessLookupError where there is none.
    """
    return (
        Path(f"/proc/{pid}/stat")
        .read_text(encoding="utf-8", errors="replace")
        .rpartition(")")[2]
        .split()[19]
    )
