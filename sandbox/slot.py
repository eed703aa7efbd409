"""A slot seen from outside: one zygote with its cgroup, and the processes of the one job that runs in it now."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import cgroups
from sandbox.denied import Denied
from sandbox.isolation import SIGNALLED
from sandbox.protocol import Limits, Verdict
from sandbox.wire import Frames, TooLong

ZYGOTE = Path(__file__).with_name("zygote.py")
START_S = 20.0  # a zygote that takes longer is broken
CLEAN_S = 15.0
TICK_S = 0.05
LATE_TICK_S = 0.005
READ_BYTES = 1 << 16  # a larger buffer would be mapped and unmapped for each message
SCM_CREDENTIALS = 2  # of socket(7): struct ucred, filled in by the kernel
CORES = os.cpu_count() or 1
SCRATCH_BYTES = 64 * 2**20
DEFAULT_SLACK = 64 * 2**20  # of address space, for what a program maps and does not use
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1",
    "LD_BIND_NOW": "1",  # else each fork links anew
    "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
}  # fmt: skip


class Refused(RuntimeError):
    """This machine does not grant the rung."""


class Broken(RuntimeError):
    """The slot failed, not the program."""


@dataclass(frozen=True)
class Stop:
    """Why a program will not be listened to any more."""

    verdict: Verdict
    detail: str


class Slot:
    """Raises Refused when the machine does not let the zygote confine itself as told, Broken when the zygote was killed, or failed otherwise."""

    def __init__(self, rung: str, packages: dict[str, str], preload: list[str], number: int, scratch: str) -> None:
        """number: 0 to 3, unique in this process. scratch: where a rung without mounts keeps what programs write."""
        self.rung = rung
        self.scratch = tempfile.mkdtemp(dir=scratch, prefix="slot-") if rung == "bare" else None
        self.control, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config = {
            "control": inner.fileno(), "rung": rung, "packages": packages, "preload": preload, "parent": os.getpid(),
            "uid": 200_000 + 4 * os.getpid() + number, "package_paths": sorted({str(Path(folder).parent) for folder in packages.values()}),
        }  # fmt: skip
        if self.scratch:
            os.chmod(self.scratch, 0o777)
        libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        home = self.scratch or "/scratch"
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
            self.address_bytes = int(Path(f"/proc/{told['pid']}/statm").read_text().split()[0]) * resource.getpagesize()
        except OSError as error:
            self.close()
            raise self._fate(str(error)) from None
        except (Refused, Broken):
            self.close()
            raise
        if self.denied:
            self.denied.heard_the_probe()
        self.base_bytes = self.cgroup.used_bytes() if self.cgroup else 0
        self.isolation = f"{rung}: {told['ready']}" + ("+cgroup" if self.cgroup else "")

    def _hear_first(self) -> dict[str, Any]:
        """The zygote's word that it is ready. Before that it may hand over its listener, and ask by it. Raises OSError when it is gone."""
        self.control.send(b"g")
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if not self.wait(until - time.monotonic()):
                continue
            data, ancillary, _, _ = self.control.recvmsg(65536, socket.CMSG_SPACE(12) + socket.CMSG_SPACE(4))
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
            self.denied = Denied(struct.unpack("i", sent[socket.SCM_RIGHTS])[0], pid)
        raise Broken(f"{self.rung}: no answer from the zygote within {START_S:.0f} s")

    def _fate(self, said: str) -> Refused | Broken:
        """Of a zygote that is gone. SIGSYS is a filter above ours that forbids the rung; whatever else ended it says nothing about the machine."""
        code = self.process.returncode
        number = -code if code < 0 else code - SIGNALLED
        if number == signal.SIGSYS:
            return Refused(f"{self.rung}: killed by a system call filter of this machine")
        return Broken(f"{self.rung}: the zygote ended while it started ({f'signal {number}' if number > 0 else f'status {code}'}): {said}")

    def wait(self, timeout_s: float) -> bool:
        """Whether the zygote has something to say, after waiting for it at most this long; what it asks meanwhile is answered."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        if self.denied:
            poll.register(self.denied.handle, select.POLLIN)
        until = time.monotonic() + timeout_s
        while ready := poll.poll(max(0.0, until - time.monotonic()) * 1000):
            for handle, event in ready:
                if handle == self.control.fileno():
                    return True
                if self.denied and event & select.POLLIN:
                    self.denied.answer()
                else:
                    poll.unregister(handle)
        return False

    def start(self, role: str, style: str, limits: Limits, tests: int, descriptors: list[int]) -> None:
        """Has the zygote fork a process with these descriptors as 0, 1, 2, ... They are closed here."""
        memory = limits.memory_mb * 2**20
        # the cgroup counts what is used; address space is the fence where there is none
        address_bytes = self.address_bytes + (2 * memory + 2**30 if self.cgroup else memory + DEFAULT_SLACK)
        order = f"start {role} {style} {int(limits.cpu_s * tests) + 1} {address_bytes} {limits.processes} {limits.files}"
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
                    return float(words[0])
        except OSError as error:
            raise Broken(f"the zygote does not clean up: {error}") from None
        raise Broken("the zygote does not clean up")

    def scratch_bytes(self) -> int:
        """What lies in a scratch folder that has no size of its own; 0 where the mount has one."""
        if self.scratch is None:
            return 0
        return sum(_blocks(os.path.join(root, name)) for root, _, names in os.walk(self.scratch) for name in names) * 512

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
            shutil.rmtree(self.scratch, ignore_errors=True)


def _blocks(path: str) -> int:
    try:
        return os.lstat(path).st_blocks
    except OSError:  # gone meanwhile
        return 0


class Watch:
    """Listens to the processes of one attempt: frames on the results pipe, output, exits. Nothing here trusts what it reads."""

    def __init__(self, slots: list[Slot], results: int, outputs: list[int], limits: Limits, owner: int, speaker: str) -> None:
        """slots: the program's, then the judge's if there is one. speaker: the role whose end is the end of the results."""
        self.slot, self.limits, self.owner, self.speaker = slots[0], limits, owner, speaker
        self.results, self.outputs = results, outputs
        self.kept: dict[int, list[bytes]] = {handle: [] for handle in outputs}
        self.output_bytes = 0
        self.exits: dict[str, int] = {}
        self.peak = 0
        self.on_exit: dict[str, Any] = {}
        self._frames: deque[bytes] = deque()
        self._reader = Frames()
        self._too_long = ""
        self._poll = select.poll()
        self._open = {results, *outputs}
        for handle in self._open:
            os.set_blocking(handle, False)
            self._poll.register(handle, select.POLLIN)
        self._zygotes = {slot.control.fileno(): slot for slot in slots}
        self._denied = {slot.denied.handle: slot.denied for slot in slots if slot.denied}
        for handle in (*self._zygotes, *self._denied):
            self._poll.register(handle, select.POLLIN)
        self._poll.register(owner, select.POLLIN)
        cgroup = self.slot.cgroup
        self._kills = cgroup.oom_kills() if cgroup else 0
        self._cpu = cgroup.cpu_s() if cgroup else 0.0
        self._judges = slots[1].cgroup if len(slots) > 1 else None
        self.started, self._cpu_started, self._judged = time.monotonic(), 0.0, 0.0

    def await_set_up(self) -> None:
        """Until the process says that nothing of ours is left to do. Raises Broken: a program cannot make this fail, it has not run yet."""
        begun = time.monotonic()
        while not self._frames:
            if self.speaker in self.exits or time.monotonic() - begun > START_S:
                raise Broken(f"a process could not be set up: {self.exits or 'no word'}")
            self._pump(START_S)
        if self._frames.popleft() != b"S":
            raise Broken("a process could not be set up: unknown first message")
        self.begin()

    def rest(self) -> list[bytes]:
        """All frames that came and were not asked for."""
        return list(self._frames)

    def begin(self) -> None:
        """The clock of a test starts."""
        self.started = time.monotonic()
        self._cpu_started = self.cpu_s()
        self._judged = self._judges.cpu_s() if self._judges else 0.0

    def cpu_s(self) -> float:
        return self.slot.cgroup.cpu_s() - self._cpu if self.slot.cgroup else 0.0

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def late(self) -> bool:
        """Whether the test's clock has run out. What the judge itself worked meanwhile is not the program's time, up to as much again."""
        seconds = self.seconds()
        if seconds <= self.limits.wall_s:
            return False
        judging = self._judges.cpu_s() - self._judged if self._judges else 0.0
        return seconds - min(judging, self.limits.wall_s) > self.limits.wall_s

    def next(self) -> bytes | Stop:
        """The next frame, or why there is none."""
        while True:
            if stop := self.over(clock=not self._frames):  # what has arrived was in time
                return stop
            if self._frames:
                return self._frames.popleft()
            if self.speaker in self.exits:
                self._drain()
                if not self._frames:
                    return self.over(clock=False) or self.ending(self.exits[self.speaker])
                continue
            self._pump(self._left_s())

    def exit(self, role: str = "program") -> int | Stop:
        """Waits until this process has ended by itself: its wait status, all output read, or why it was not waited for."""
        while role not in self.exits:
            if stop := self.over():
                return stop
            self._pump(self._left_s())
        self._drain()
        return self.over(clock=False) or self.exits[role]

    def over(self, *, clock: bool = True) -> Stop | None:
        """A limit that is broken now. The wall clock only where `clock`, and memory, which is looked at once more when the job has ended."""
        if self.output_bytes > self.limits.output_kb * 1024:
            return Stop(Verdict.OLE, f"more than {self.limits.output_kb} kB of output")
        if self._too_long:
            return Stop(Verdict.OLE, self._too_long)
        if clock and self.out_of_memory():
            return Stop(Verdict.MLE, f"more than {self.limits.memory_mb} MB of memory")
        if clock and self.late():
            return Stop(Verdict.TLE, f"more than {self.limits.wall_s:g} s")
        if self.seconds() * CORES > self.limits.cpu_s and self.cpu_s() - self._cpu_started > self.limits.cpu_s:
            return Stop(Verdict.TLE, f"more than {self.limits.cpu_s:g} s of CPU")
        if clock and self.slot.scratch and self.slot.scratch_bytes() > SCRATCH_BYTES:
            return Stop(Verdict.RE, f"more than {SCRATCH_BYTES >> 20} MB of files")
        return None

    def out_of_memory(self) -> bool:
        return self.slot.cgroup is not None and self.slot.cgroup.oom_kills() > self._kills

    def ending(self, status: int) -> Stop:
        """What a wait status means, for a process that should not have ended."""
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGXCPU or (number == signal.SIGKILL and self.cpu_s() - self._cpu_started >= self.limits.cpu_s - 0.1):
                return Stop(Verdict.TLE, "out of CPU time")
            return Stop(Verdict.RE, f"killed by signal {number}")
        return Stop(Verdict.RE, f"left with status {os.WEXITSTATUS(status)}")

    def close(self) -> None:
        for handle in (self.results, *self.outputs):
            os.close(handle)

    def _left_s(self) -> float:
        """How long to wait before the limits are looked at again."""
        return max(self.limits.wall_s - self.seconds(), LATE_TICK_S)

    def _pump(self, timeout_s: float) -> None:
        for handle, event in self._poll.poll(max(0.0, min(timeout_s, TICK_S)) * 1000):
            if handle == self.owner:
                raise SystemExit(0)  # nobody waits for the report
            if handle in self._denied:
                if event & select.POLLIN:  # else nobody is left who could ask, and to receive would be to wait
                    self._denied[handle].answer()
                else:
                    self._poll.unregister(handle)
                continue
            if handle in self._zygotes:
                self._hear(self._zygotes[handle])
            else:
                self._read(handle)

    def _hear(self, slot: Slot) -> None:
        try:
            told = slot.control.recv(65536)
        except OSError:
            told = b""
        if not told:
            raise Broken("the zygote died")
        _, role, status, peak = told.decode().split()
        self.exits[role] = int(status)
        self.peak = max(self.peak, int(peak))
        if hook := self.on_exit.pop(role, None):
            hook()

    def _read(self, handle: int) -> bool:
        """False when there is nothing (more) to read now."""
        try:
            data = os.read(handle, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._poll.unregister(handle)
            self._open.discard(handle)
            return False
        if handle == self.results:
            try:
                self._frames.extend(self._reader.feed(data))
            except TooLong as error:
                self._too_long = str(error)
        else:
            self.output_bytes += len(data)
            self.kept[handle].append(data)
        return True

    def _drain(self) -> None:
        """Reads what is there without waiting for an end: a child of the program may hold the pipe."""
        for handle in list(self._open):
            while handle in self._open and not self._too_long and self.output_bytes <= self.limits.output_kb * 1024 and self._read(handle):
                pass


def sealed(data: bytes) -> int:
    """A descriptor to read this from: in memory, seen by nobody by name, never to be written again."""
    handle = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    fcntl.fcntl(handle, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return handle


def sweep(folder: Path) -> None:
    """Removes scratch folders and cgroups of workers that were killed."""
    cgroups.sweep()
    for left in folder.glob("ratchet-scratch-*"):
        if not cgroups.alive(int(left.name.split("-")[2])):
            shutil.rmtree(left, ignore_errors=True)
