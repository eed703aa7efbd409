"""Workers as processes on this machine: one worker and its zygote per core, started by exec, so
that the owner may have threads.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sandbox.backends import BackendKind, WorkerDied
from sandbox.cores import usable_cores
from sandbox.isolation import process_tree
from sandbox.wire import Frames, TooLong, frame
from sandbox.worker.slot import sweep

WORKER = Path(__file__).resolve().parent.parent / "worker_process.py"
START_S = 60.0
KILLED_S = 2.0  # for a process to end after SIGKILL


class IsolationError(RuntimeError):
    """The requested isolation is not available on this machine."""


MAX_POLL_MS = 2**31 - 1  # of poll, about 25 days


class LocalBackend:
    """Starts workers as local processes.

    isolation: "auto" or a level of sandbox.isolation.levels.
    packages: what programs may import besides the standard library, where installed.
    """

    def __init__(self, isolation: str, packages: tuple[str, ...]) -> None:
        self.isolation = isolation
        self.packages = folders_of(packages)
        self.workers = usable_cores()
        sweep(Path(tempfile.gettempdir()))

    def open(self, number: int, of: int) -> LocalChannel:
        """Open a worker. If there are as many workers as cores, or a multiple, each is pinned to
        one core with its zygotes and programs; that takes a sixth less time per program.
        """
        cores = sorted(os.sched_getaffinity(0))
        core = cores[number % len(cores)] if of % len(cores) == 0 else None
        return LocalChannel(self.isolation, self.packages, core)

    def close(self) -> None:
        sweep(Path(tempfile.gettempdir()))


class LocalChannel:
    """A worker process and the two pipes to it."""

    where = ""

    def __init__(self, isolation: str, packages: dict[str, str], core: int | None = None) -> None:
        config = {
            "isolation": isolation,
            "packages": packages,
            "owner": os.getpid(),
            "core": core,
        }
        self._process = subprocess.Popen(
            [getattr(sys, "_base_executable", sys.executable), "-S", "-s", "-E", "-P", str(WORKER),
             json.dumps(config)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(),
            start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin and self._process.stdout
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._reader = Frames(most=1 << 28)
        try:
            hello = json.loads(self.hear(START_S))
        except WorkerDied:
            self.close()
            raise
        if "broken" in hello:
            self.close()
            raise WorkerDied(hello["broken"])
        if "isolation" not in hello:
            self.close()
            raise IsolationError(
                f"isolation {isolation!r} is not available on this machine "
                f"({hello.get('refused')}): allow it, or choose a lower level"
            )
        self.isolation = str(hello["isolation"])

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, payload: bytes, timeout_s: float) -> None:
        view, until = memoryview(frame(payload)), time.monotonic() + timeout_s
        while view:
            try:
                view = view[os.write(self._to, view) :]
            except BlockingIOError:  # more than the pipe holds: the worker is reading it
                if not _ready(self._to, select.POLLOUT, until):
                    raise WorkerDied(
                        f"worker {self.pid} took no job within {timeout_s:.0f} s"
                    ) from None
            except OSError as error:
                raise WorkerDied(f"worker {self.pid} is gone: {error}") from None

    def hear(self, timeout_s: float) -> bytes:
        until = time.monotonic() + timeout_s
        while _ready(self._from, select.POLLIN, until):
            for answer in self._read():
                return answer
        raise WorkerDied(f"worker {self.pid} gave no answer within {timeout_s:.0f} s")

    def _read(self) -> list[bytes]:
        data = os.read(self._from, 1 << 16)
        if not data:
            raise WorkerDied(f"worker {self.pid} is gone")
        try:
            return list(self._reader.feed(data))
        except TooLong as error:
            raise WorkerDied(f"worker {self.pid}: {error}") from None

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            try:
                self._process.wait(KILLED_S)
            except subprocess.TimeoutExpired:
                # It is in a system call that its programs hold up: it ends when they have.
                process_tree.kill_descendants(self._process.pid)
                self._process.wait()


def _ready(handle: int, event: int, until: float) -> bool:
    """Whether this descriptor gets ready before `until` (of time.monotonic). Uses poll, because
    select supports only descriptors below 1024.
    """
    poll = select.poll()
    poll.register(handle, event)
    milliseconds = (until - time.monotonic()) * 1000
    return bool(poll.poll(min(max(0.0, milliseconds), MAX_POLL_MS)))


def folders_of(packages: tuple[str, ...]) -> dict[str, str]:
    """Return name -> folder, or single file, of each installed package, and the folder of the
    shared libraries that it brings.
    """
    return dict(folder for name in packages for folder in _folders(name))


def _folders(name: str) -> list[tuple[str, str]]:
    """Return a package's folder and its `.libs` folder of shared libraries, or a module's single
    file; nothing if it is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec and spec.origin and spec.has_location and not spec.submodule_search_locations:
        return [(name, spec.origin)]
    if spec is None or not spec.submodule_search_locations:
        return []
    folder = Path(next(iter(spec.submodule_search_locations)))
    libraries = folder.with_name(f"{name}.libs")
    return [
        (name, str(folder)),
        *([(libraries.name, str(libraries))] if libraries.is_dir() else []),
    ]


def _environment() -> dict[str, str]:
    """Return a minimal environment: secrets in the environment of a trainer must not get near a
    program.
    """
    return {
        name: os.environ[name]
        for name in ("PATH", "TMPDIR", "LANG", "LD_LIBRARY_PATH")
        if name in os.environ
    }


BACKEND = BackendKind(LocalBackend)
