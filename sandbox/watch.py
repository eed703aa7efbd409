"""What a worker sees and hears of one attempt: messages, output and exits of its processes, and which limit was broken.

Nothing here trusts what it reads.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from sandbox.cgroups import Cgroup
from sandbox.protocol import Limits, Verdict
from sandbox.slot import READ_BYTES, START_S, Broken, Slot
from sandbox.wire import Frames, TooLong

TICK_S = 0.05
LATE_TICK_S = 0.005
CORES = os.cpu_count() or 1
SCRATCH_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Stop:
    """Why a program will not be listened to any more."""

    verdict: Verdict
    detail: str


class Span:
    """The time since a moment, of a test or of a whole program, and what was worked in it."""

    def __init__(self, cgroup: Cgroup | None, judges: Cgroup | None) -> None:
        self._cgroup, self._judges = cgroup, judges
        self.started, self._worked, self._judged = time.monotonic(), 0.0, 0.0

    def begin(self, *, read: bool = True) -> None:
        self.started = time.monotonic()
        if not read:
            return
        self._worked = self._cgroup.cpu_s() if self._cgroup else 0.0
        self._judged = self._judges.cpu_s() if self._judges else 0.0

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def cpu_s(self) -> float:
        """Of the program's processes; 0 where no cgroup tells it."""
        return self._cgroup.cpu_s() - self._worked if self._cgroup else 0.0

    def late(self, wall_s: float) -> bool:
        """Whether the clock has run out. What the judge itself worked meanwhile is not the program's time, up to as much again."""
        seconds = self.seconds()
        if seconds <= wall_s:
            return False
        judging = self._judges.cpu_s() - self._judged if self._judges else 0.0
        return seconds - min(judging, wall_s) > wall_s

    def worked(self, cpu_s: float) -> bool:
        """Whether more CPU time than this was used."""
        return self.seconds() * CORES > cpu_s and self.cpu_s() > cpu_s


class Watch:
    """Listens to the processes of one attempt: frames on the results pipe, output, exits. Nothing here trusts what it reads."""

    def __init__(
        self, slots: list[Slot], results: int, outputs: list[int], limits: Limits, owner: int, speaker: str, gate: int | None = None
    ) -> None:
        """slots: the program's, then the judge's if there is one. speaker: the role whose end is the end of the results. gate: what the program
        waits for when it has been set up.

        limits: where they name totals, what is left of them for this program.
        """
        self.slot, self.limits, self.owner, self.speaker = slots[0], limits, owner, speaker
        self.results, self.outputs, self.gate, self.turn = results, outputs, gate, self.slot.turn
        self.due = -1  # messages, after which the program has nothing more to do; negative where its end alone tells
        self.kept: dict[int, list[bytes]] = {handle: [] for handle in outputs}
        self.output_bytes = 0
        self._idle = False  # nothing came in the last tick
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
        judges = slots[1].cgroup if len(slots) > 1 else None
        self.test, self.whole = Span(cgroup, judges), Span(cgroup, judges)
        self._output_kb = limits.output_kb if limits.total_output_kb is None else min(limits.output_kb, limits.total_output_kb)

    def await_set_up(self) -> None:
        """Until the process says that nothing of ours is left to do. Raises Broken: a program cannot make this fail, it has not run yet."""
        begun = time.monotonic()
        while not self._frames:
            if self.speaker in self.exits or time.monotonic() - begun > START_S:
                raise Broken(f"a process could not be set up: {self.exits or 'no word'}")
            self._pump(START_S)
        if self._frames.popleft() != b"S":
            raise Broken("a process could not be set up: unknown first message")
        if self.gate is not None:
            self._let_go(self.gate)
        self.test.begin()
        self.whole.begin()

    def _let_go(self, gate: int) -> None:
        self.turn.take()
        try:
            os.write(gate, b"g")
        except BrokenPipeError:
            self.let_leave()
            raise Broken("a process ended before it could run its program") from None
        if not self.turn.shared:  # nobody waits for its end
            os.close(gate)
            self.gate = None

    def let_leave(self) -> None:
        """The program is not heard any more."""
        self.turn.give()
        if self.gate is not None:
            os.close(self.gate)
            self.gate = None

    def rest(self) -> list[bytes]:
        """All frames that came and were not asked for."""
        return list(self._frames)

    def begin(self) -> None:
        """The clock of the next test starts. Where something has arrived already that test is over, and what was worked need not be asked."""
        self.test.begin(read=not self._frames)

    def seconds(self) -> float:
        return self.test.seconds()

    def left(self) -> Limits:
        """The limits for the program's next run: their totals less what this one used."""
        of = self.limits
        return replace(
            of,
            total_wall_s=None if of.total_wall_s is None else max(0.0, of.total_wall_s - self.whole.seconds()),
            total_cpu_s=None if of.total_cpu_s is None else max(0.0, of.total_cpu_s - self.whole.cpu_s()),
            total_output_kb=None if of.total_output_kb is None else max(0, of.total_output_kb - self.output_bytes // 1024),
        )

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
        """A limit that is broken now. The wall clock only where `clock`; memory when nothing else comes, and once more when the job has ended."""
        if self.output_bytes > self._output_kb * 1024:
            return Stop(Verdict.OLE, f"more than {self._output_kb} kB of output")
        if self._too_long:
            return Stop(Verdict.OLE, self._too_long)
        if clock and self._idle and self.out_of_memory():
            return Stop(Verdict.MLE, f"more than {self.limits.memory_mb} MB of memory")
        if clock and self.test.late(self.limits.wall_s):
            return Stop(Verdict.TLE, f"more than {self.limits.wall_s:g} s")
        if self.test.worked(self.limits.cpu_s):
            return Stop(Verdict.TLE, f"more than {self.limits.cpu_s:g} s of CPU")
        if clock and self.limits.total_wall_s is not None and self.whole.late(self.limits.total_wall_s):
            return Stop(Verdict.TLE, "more time than its tests have together")
        if self.limits.total_cpu_s is not None and self.whole.worked(self.limits.total_cpu_s):
            return Stop(Verdict.TLE, "more CPU time than its tests have together")
        if clock and self.slot.scratch and self.slot.scratch_bytes() > SCRATCH_BYTES:
            return Stop(Verdict.RE, f"more than {SCRATCH_BYTES >> 20} MB of files")
        return None

    def out_of_memory(self) -> bool:
        return self.slot.cgroup is not None and self.slot.cgroup.oom_kills() > self._kills

    def ending(self, status: int) -> Stop:
        """What a wait status means, for a process that should not have ended."""
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGXCPU or (number == signal.SIGKILL and self.test.cpu_s() >= self.limits.cpu_s - 0.1):
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
        ready = self._poll.poll(max(0.0, min(timeout_s, TICK_S)) * 1000)
        self._idle = not ready
        for handle, event in ready:
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
            before = len(self._frames)
            try:
                self._frames.extend(self._reader.feed(data))
            except TooLong as error:
                self._too_long = str(error)
            self.due -= len(self._frames) - before
            if self.due == 0:
                self.turn.give()
        else:
            self.output_bytes += len(data)
            self.kept[handle].append(data)
        return True

    def _drain(self) -> None:
        """Reads what is there without waiting for an end: a child of the program may hold the pipe."""
        for handle in list(self._open):
            while handle in self._open and not self._too_long and self.output_bytes <= self._output_kb * 1024 and self._read(handle):
                pass
