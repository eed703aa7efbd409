"""The owner's side of a slot: one zygote with its cgroup, and the orders that it gets."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

from sandbox import folders
from sandbox.isolation import cgroups
from sandbox.isolation.accounts import Accounts
from sandbox.isolation.file_tree import SCRATCH_NAMES
from sandbox.isolation.levels import COUNTED, SIGNALLED, UNCOUNTED, has_own_uid
from sandbox.languages.language import Language
from sandbox.limits import Limits
from sandbox.seeding import environment
from sandbox.worker.call_counter import CallCounter
from sandbox.worker.syscall_monitor import Denied

ZYGOTE = Path(__file__).resolve().parents[1] / "child" / "zygote.py"
START_S = 20.0  # a zygote that takes longer to start is broken
FOLDER_START_S = 300.0  # the same where it imports pandas and the like first, on a busy machine
CLEAN_S = 15.0
SWEEP_S = 5.0
SCRATCH = re.compile(r"ratchet-scratch-(\d{1,10})-.*")  # folder of a worker, by its pid
READ_BYTES = 1 << 16  # a larger buffer would be mapped and unmapped for each message
SCM_CREDENTIALS = 2  # see socket(7): a struct ucred, filled in by the kernel
ADDRESS_SLACK = 2**30  # memory that a program maps and does not use, such as thread stacks

MAX_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # that this machine allows a process

ENVIRONMENT = {
    "PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1",
    "PYTHONNODEBUGRANGES": "1",  # smaller programs: no carets in tracebacks, which nobody reads
    "LD_BIND_NOW": "1",  # otherwise each fork resolves symbols again
    "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}  # fmt: skip


class LevelRefused(RuntimeError):
    """The machine does not allow this isolation level."""


class Broken(RuntimeError):
    """The slot failed, not the program."""


class Slot:
    """A running zygote.

    Raises LevelRefused when the machine does not let the zygote confine itself, Broken when the
    zygote was killed or failed otherwise.
    """

    def __init__(
        self,
        level: str,
        packages: dict[str, str],
        preload: list[str],
        number: int,
        scratch: str,
        *,
        judge: bool = False,
        language: Language | None = None,
        shows_machine: bool = False,
        package_folder: str = "",
        seed: int = 0,
    ) -> None:
        """number: 0 to 15, unique in this process.
        language: of the slot's programs, if it is not Python.
        package_folder: a folder of packages, in place of `packages`.
        scratch: where a level without mounts keeps what programs write.
        judge: the slot's processes run tests, not programs.
        shows_machine: programs see more of a machine (sandbox/isolation/machine.py).
        seed: see `Job.seed`; may change to another with the same hash seed.
        """
        self.level, self.seed = level, seed
        self.scratch = tempfile.mkdtemp(dir=scratch, prefix="slot-") if level == "bare" else None
        self.control, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        home = self.scratch or "/scratch"
        self.package_folder = package_folder
        self._start_s = FOLDER_START_S if package_folder else START_S
        if package_folder:
            packages = {"": package_folder}
        self._call_counter = CallCounter(home, packages.values(), namespaces=level != "bare")
        if level != "bare":
            package_path = f"/packages/{os.path.basename(package_folder)}".rstrip("/")
        else:
            package_path = package_folder or link_packages(packages, Path(scratch))
        config = {
            "control": inner.fileno(), "level": level, "packages": packages, "preload": preload,
            "shows_machine": shows_machine, "seed": seed, "parent": os.getpid(),
            "runs": "judge_process" if judge else "executable" if language else "program",
            "shown": list(filter(os.path.lexists, language.shown)) if language else [],
            "uid": 200_000 + 16 * os.getpid() + number,
            "package_path": package_path,
            "watched": [] if judge else sorted(self._call_counter.watched),
        }  # fmt: skip
        if self.scratch:
            os.chmod(self.scratch, 0o777)
        libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        self.process = subprocess.Popen(
            [getattr(sys, "_base_executable", sys.executable), "-S", "-s", "-P", str(ZYGOTE),
             json.dumps(config)],
            env={**ENVIRONMENT, **environment(seed), **libraries, "HOME": home, "TMPDIR": home},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[inner.fileno()],
            start_new_session=True,
        )  # fmt: skip
        inner.close()
        self.cgroup = cgroups.create(f"{os.getpid()}-{number}", self.process.pid)
        self.denied: Denied | None = None  # counts refused calls, where the kernel supports it
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            ready = self._receive_ready()
            # Read here: a zygote in a container may have no /proc.
            self.address_bytes = (
                int(Path(f"/proc/{ready['pid']}/statm").read_text().split()[0])
                * resource.getpagesize()
            )
            self.address_bytes += language.address_mb * 2**20 if language else 0
        except OSError as error:
            self.close()
            raise self._start_error(str(error)) from None
        except (LevelRefused, Broken):
            self.close()
            raise
        if self.denied:
            self.denied.evaluate_probe()
        self.base_bytes = self.cgroup.used_bytes() if self.cgroup else 0
        self.accounts = Accounts(ready["pid"], ready["uid"], self.scratch)
        if self.denied and not self.cgroup:
            self.denied.accounts = self.accounts
        # CPU seconds of all jobs so far
        self._waited_s, self._counted_s = (
            0.0,
            self.cgroup.cpu_s() - ready["own_cpu_s"] if self.cgroup else 0.0,
        )
        self.isolation = f"{level}: {ready['ready']}" + ("+cgroup" if self.cgroup else "")

    def _receive_ready(self) -> dict[str, Any]:
        """Return the zygote's ready message. Before that it may send its seccomp listener, whose
        calls are answered while waiting. Raises OSError when the zygote is gone.
        """
        self.control.send(COUNTED if self.cgroup else UNCOUNTED)
        until = time.monotonic() + self._start_s
        while time.monotonic() < until:
            if not self.wait(until - time.monotonic()):
                continue
            data, ancillary, _, _ = self.control.recvmsg(
                65536, socket.CMSG_SPACE(12) + socket.CMSG_SPACE(4)
            )
            if not data:
                raise ConnectionResetError("it ended without a message")
            message: dict[str, Any] = json.loads(data)
            if "refused" in message:
                raise LevelRefused(f"{self.level}: {message['refused']}")
            if "broken" in message:
                raise Broken(f"{self.level}: the zygote could not start: {message['broken']}")
            sent = {kind: value for _, kind, value in ancillary}
            pid = struct.unpack("iII", sent[SCM_CREDENTIALS])[0]
            if "listener" not in message:
                self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
                return message | {"pid": pid}
            self.denied = Denied(
                struct.unpack("i", sent[socket.SCM_RIGHTS])[0],
                pid,
                self._call_counter,
                emptying=self.level == "bare" and not has_own_uid("bare"),
            )
        raise Broken(f"{self.level}: no answer from the zygote within {self._start_s:.0f} s")

    def _start_error(self, reason: str) -> LevelRefused | Broken:
        """Return the error for a zygote that ended. SIGSYS means that a filter of the machine
        forbids the isolation level; any other end says nothing about the machine.
        """
        code = self.process.returncode
        number = -code if code < 0 else code - SIGNALLED
        if number == signal.SIGSYS:
            return LevelRefused(f"{self.level}: killed by a system call filter of this machine")
        return Broken(
            f"{self.level}: the zygote ended while it started "
            f"({f'signal {number}' if number > 0 else f'status {code}'}): {reason}"
        )

    def wait(self, timeout_s: float) -> bool:
        """Wait at most this long for a message of the zygote; return whether there is one. Calls
        that reach the listener meanwhile are answered.
        """
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        if self.denied:
            poll.register(self.denied.handle, select.POLLIN)
        until = time.monotonic() + timeout_s
        while True:
            left_s = until - time.monotonic()
            ready = poll.poll(max(0.0, left_s) * 1000)
            if any(handle == self.control.fileno() for handle, _ in ready):
                return True
            if not ready or left_s < 0:  # a program that makes calls without end delays nobody
                return False
            for handle, event in ready:
                if self.denied and event & select.POLLIN:
                    self.denied.answer()
                else:
                    poll.unregister(handle)

    def start(
        self, role: str, style: str, limits: Limits, tests: int, descriptors: list[int]
    ) -> None:
        """Make the zygote fork a process with these descriptors as 0, 1, 2, ... They are closed in
        this process.
        """
        memory = limits.memory_mb * 2**20
        # address space; memory in use is limited apart
        address_bytes = self.address_bytes + 2 * memory + ADDRESS_SLACK
        self.accounts.begin(memory, limits.processes)
        cpu_s = min(limits.cpu_s * tests, inf if limits.total_cpu_s is None else limits.total_cpu_s)
        order = (
            f"start {role} {style} {int(cpu_s) + 1} {address_bytes} {limits.processes} "
            f"{min(limits.files, MAX_FILES)} {self.seed}"
        )
        try:
            socket.send_fds(self.control, [order.encode()], descriptors)
        except OSError as error:
            raise Broken(f"the zygote is gone: {error}") from None
        finally:
            for handle in set(descriptors):
                os.close(handle)

    def limit(self, limits: Limits) -> None:
        if self.cgroup:
            self.cgroup.limit(self.base_bytes + limits.memory_mb * 2**20, limits.processes + 4)

    def end(self) -> None:
        """Order the zygote to kill what is left of the job; `ended` waits for that."""
        with contextlib.suppress(OSError):  # `ended` reports a zygote that is gone
            self.control.send(b"end")

    def ended(self) -> float:
        """Return the CPU seconds of all processes of the job, once none is left. Raises Broken when
        they cannot be killed.
        """
        try:
            until = time.monotonic() + CLEAN_S
            while self.wait(until - time.monotonic()):
                if not (message := self.control.recv(65536)):
                    raise Broken("the zygote died")
                kind, *words = message.split()
                if kind == b"ended":
                    waited, own = map(float, words)
                    # Only the cgroup counts a child whose parent does not wait for it.
                    counted = self.cgroup.cpu_s() - own if self.cgroup else 0.0
                    used = max(waited - self._waited_s, counted - self._counted_s)
                    self._waited_s, self._counted_s = waited, counted
                    return used
        except OSError as error:
            raise Broken(f"the zygote does not clean up: {error}") from None
        raise Broken("the zygote does not clean up")

    def scratch_bytes(self) -> int:
        """Return the size of a scratch folder that is no mount of its own; 0 where the mount limits
        it.
        """
        if self.scratch is None:
            return 0
        return folders.size(self.scratch, SCRATCH_NAMES) + self.accounts.unnamed_bytes()

    def close(self) -> None:
        self.control.close()
        if self.denied:
            os.close(self.denied.handle)
            self.denied = None
        try:
            self.process.wait(3.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.cgroup:
            self.cgroup.remove()
        if self.scratch:
            folders.remove(self.scratch)


def link_packages(packages: dict[str, str], scratch: Path) -> str:
    """Return a folder with links to these packages only, for a level without mounts: programs must
    not list the folder that holds the packages.
    """
    folder = scratch / "packages"
    folder.mkdir(exist_ok=True)
    for path in map(Path, packages.values()):
        if not (folder / path.name).is_symlink():
            (folder / path.name).symlink_to(path)
    return str(folder)


def sealed_file(*parts: bytes, more: Iterable[bytes] = ()) -> int:
    """Return a descriptor of a sealed file in memory with these contents: it has no name and can
    never be written again.
    """
    handle = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    for part in chain(parts, more):
        view = memoryview(part)
        while view:
            view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    seal(handle)
    return handle


def seal(handle: int) -> None:
    """Seal a file in memory, which nobody maps for writing."""
    fcntl.fcntl(
        handle,
        fcntl.F_ADD_SEALS,
        fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE,
    )


def sweep(folder: Path) -> None:
    """Remove scratch folders and cgroups of killed workers. Never raises: what cannot be removed
    now is left.
    """
    until = time.monotonic() + SWEEP_S
    cgroups.sweep()
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if (match := SCRATCH.fullmatch(name)) and not cgroups.alive(int(match[1])):
                folders.remove(os.path.join(folder, name), until)
