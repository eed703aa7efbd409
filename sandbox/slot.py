"""A slot seen from outside: one zygote with its cgroup, and what it is ordered to start and to end."""

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

from sandbox import cgroups, folders
from sandbox.accounts import Accounts
from sandbox.denied import Denied
from sandbox.isolation import COUNTED, SCRATCH_NAMES, SIGNALLED, UNCOUNTED, has_own_uid
from sandbox.protocol import Limits
from sandbox.tried import Tried
from sandbox.turn import Turn

ZYGOTE = Path(__file__).with_name("zygote.py")
START_S = 20.0  # a zygote that takes longer is broken
CLEAN_S = 15.0
SWEEP_S = 5.0
SCRATCH = re.compile(r"ratchet-scratch-(\d{1,10})-.*")  # of a worker, by its pid
READ_BYTES = 1 << 16  # a larger buffer would be mapped and unmapped for each message
SCM_CREDENTIALS = 2  # of socket(7): struct ucred, filled in by the kernel
ADDRESS_SLACK = 2**30  # for what a program maps and does not use, as the stacks of threads

ENVIRONMENT = {
    "PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1",
    "PYTHONNODEBUGRANGES": "1",  # a smaller program: no carets in its tracebacks, which nobody reads
    "LD_BIND_NOW": "1",  # else each fork links anew
    "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
}  # fmt: skip


class Refused(RuntimeError):
    """This machine does not grant the rung."""


class Broken(RuntimeError):
    """The slot failed, not the program."""


class Slot:
    """Raises Refused when the machine does not let the zygote confine itself as told, Broken when the zygote was killed, or failed otherwise."""

    def __init__(
        self,
        rung: str,
        packages: dict[str, str],
        preload: list[str],
        number: int,
        scratch: str,
        turn: Turn,
        *,
        judge: bool = False,
    ) -> None:
        """number: 0 to 7, unique in this process. scratch: where a rung without mounts keeps what programs write. judge: its processes run tests."""
        self.rung, self.turn = rung, turn
        self.scratch = tempfile.mkdtemp(dir=scratch, prefix="slot-") if rung == "bare" else None
        self.control, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        home = self.scratch or "/scratch"
        self._tried = Tried(home, packages.values(), namespaces=rung != "bare")
        config = {
            "control": inner.fileno(), "rung": rung, "packages": packages, "preload": preload, "judge": judge, "parent": os.getpid(),
            "uid": 200_000 + 8 * os.getpid() + number, "package_path": linked(packages, Path(scratch)) if rung == "bare" else "/packages",
            "watched": [] if judge else sorted(self._tried.watched),
        }  # fmt: skip
        if self.scratch:
            os.chmod(self.scratch, 0o777)
        libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        self.process = subprocess.Popen(
            [getattr(sys, "_base_executable", sys.executable), "-S", "-s", "-P", str(ZYGOTE), json.dumps(config)],
            env={**ENVIRONMENT, **libraries, "HOME": home, "TMPDIR": home},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[inner.fileno()], start_new_session=True,
        )  # fmt: skip
        inner.close()
        self.cgroup = cgroups.create(f"{os.getpid()}-{number}", self.process.pid)
        self.denied: Denied | None = None  # counts what programs were refused, where the kernel can
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            told = self._hear_first()
            # read here: a zygote in a container may have no /proc
            self.address_bytes = (
                int(Path(f"/proc/{told['pid']}/statm").read_text().split()[0])
                * resource.getpagesize()
            )
        except OSError as error:
            self.close()
            raise self._fate(str(error)) from None
        except (Refused, Broken):
            self.close()
            raise
        if self.denied:
            self.denied.heard_the_probe()
        self.base_bytes = self.cgroup.used_bytes() if self.cgroup else 0
        self.accounts = Accounts(told["pid"], told["uid"], self.scratch)
        if self.denied and not self.cgroup:
            self.denied.accounts = self.accounts
        self._waited_s, self._counted_s = (
            0.0,
            self.cgroup.cpu_s() - told["own_cpu_s"] if self.cgroup else 0.0,
        )  # of all jobs so far
        self.isolation = f"{rung}: {told['ready']}" + ("+cgroup" if self.cgroup else "")

    def _hear_first(self) -> dict[str, Any]:
        """The zygote's word that it is ready. Before that it may hand over its listener, and ask by it. Raises OSError when it is gone."""
        self.control.send(COUNTED if self.cgroup else UNCOUNTED)
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if not self.wait(until - time.monotonic()):
                continue
            data, ancillary, _, _ = self.control.recvmsg(
                65536, socket.CMSG_SPACE(12) + socket.CMSG_SPACE(4)
            )
            if not data:
                raise ConnectionResetError("it ended without a word")
            told: dict[str, Any] = json.loads(data)
            if "refused" in told:
                raise Refused(f"{self.rung}: {told['refused']}")
            if "broken" in told:
                raise Broken(f"{self.rung}: the zygote could not start: {told['broken']}")
            sent = {kind: value for _, kind, value in ancillary}
            pid = struct.unpack("iII", sent[SCM_CREDENTIALS])[0]
            if "listener" not in told:
                self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
                return told | {"pid": pid}
            self.denied = Denied(
                struct.unpack("i", sent[socket.SCM_RIGHTS])[0],
                pid,
                self._tried,
                emptying=self.rung == "bare" and not has_own_uid("bare"),
            )
        raise Broken(f"{self.rung}: no answer from the zygote within {START_S:.0f} s")

    def _fate(self, said: str) -> Refused | Broken:
        """Of a zygote that is gone. SIGSYS is a filter above ours that forbids the rung; whatever else ended it says nothing about the machine."""
        code = self.process.returncode
        number = -code if code < 0 else code - SIGNALLED
        if number == signal.SIGSYS:
            return Refused(f"{self.rung}: killed by a system call filter of this machine")
        return Broken(
            f"{self.rung}: the zygote ended while it started ({f'signal {number}' if number > 0 else f'status {code}'}): {said}"
        )

    def wait(self, timeout_s: float) -> bool:
        """Whether the zygote has something to say, after waiting for it at most this long; what it asks meanwhile is answered."""
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
            if not ready or left_s < 0:  # a program that asks without end holds nobody up
                return False
            for handle, event in ready:
                if self.denied and event & select.POLLIN:
                    self.denied.answer()
                else:
                    poll.unregister(handle)

    def start(
        self, role: str, style: str, limits: Limits, tests: int, descriptors: list[int]
    ) -> None:
        """Has the zygote fork a process with these descriptors as 0, 1, 2, ... They are closed here."""
        memory = limits.memory_mb * 2**20
        address_bytes = self.address_bytes + 2 * memory + ADDRESS_SLACK  # what is used is counted
        self.accounts.begin(memory, limits.processes)
        cpu_s = min(limits.cpu_s * tests, inf if limits.total_cpu_s is None else limits.total_cpu_s)
        order = f"start {role} {style} {int(cpu_s) + 1} {address_bytes} {limits.processes} {limits.files}"
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
        """Orders that whatever is left of the job be killed; `ended` waits for it."""
        with contextlib.suppress(OSError):  # a zygote that is gone says so in `ended`
            self.control.send(b"end")

    def ended(self) -> float:
        """CPU seconds of all processes of the job, none of which is left. Raises Broken when they cannot be killed."""
        try:
            until = time.monotonic() + CLEAN_S
            while self.wait(until - time.monotonic()):
                if not (told := self.control.recv(65536)):
                    raise Broken("the zygote died")
                what, *words = told.split()
                if what == b"ended":
                    waited, own = map(float, words)
                    counted = (
                        self.cgroup.cpu_s() - own if self.cgroup else 0.0
                    )  # a child whose parent does not wait for it is here alone
                    used = max(waited - self._waited_s, counted - self._counted_s)
                    self._waited_s, self._counted_s = waited, counted
                    return used
        except OSError as error:
            raise Broken(f"the zygote does not clean up: {error}") from None
        raise Broken("the zygote does not clean up")

    def scratch_bytes(self) -> int:
        """What lies in a scratch folder that has no size of its own; 0 where the mount has one."""
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


def linked(packages: dict[str, str], scratch: Path) -> str:
    """A folder with these packages and no others, for a rung without mounts: the folder where they lie is not to be listed."""
    folder = scratch / "packages"
    folder.mkdir(exist_ok=True)
    for path in map(Path, packages.values()):
        if not (folder / path.name).is_symlink():
            (folder / path.name).symlink_to(path)
    return str(folder)


def sealed(*parts: bytes, more: Iterable[bytes] = ()) -> int:
    """A descriptor to read all this from: in memory, seen by nobody by name, never to be written again."""
    handle = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    for part in chain(parts, more):
        view = memoryview(part)
        while view:
            view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    fcntl.fcntl(
        handle,
        fcntl.F_ADD_SEALS,
        fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE,
    )
    return handle


def sweep(folder: Path) -> None:
    """Removes scratch folders and cgroups of workers that were killed. Never an error: what cannot be removed now stays where it is."""
    until = time.monotonic() + SWEEP_S
    cgroups.sweep()
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if (left := SCRATCH.fullmatch(name)) and not cgroups.alive(int(left[1])):
                folders.remove(os.path.join(folder, name), until)
