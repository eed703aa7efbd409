"""Observes the processes of one attempt: their messages, output and exits, and which limit was
exceeded.

Nothing that is read here is trusted.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import time
from collections import deque
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from sandbox.isolation.accounts import SAMPLE_S, Accounts
from sandbox.isolation.cgroups import Cgroup
from sandbox.limits import Limits
from sandbox.verdict import Verdict
from sandbox.wire import MAX_FRAME, Frames, TooLong, tree_bytes
from sandbox.worker.slot import READ_BYTES, START_S, Broken, Slot

TICK_S = 0.05
LATE_TICK_S = 0.005
REST = 10  # pause between two checks, as a multiple of what the last one took
CORES = os.cpu_count() or 1
SCRATCH_BYTES = 64 * 2**20
SMALL = 1 << 20  # messages up to this size are parsed without an estimate of their memory
FIONREAD = 0x541B  # ioctl: number of bytes in a pipe


@dataclass(frozen=True)
class Stop:
    """Why a program is stopped, or its messages are no longer read."""

    verdict: Verdict
    detail: str


class Span:
    """Wall and CPU time since a moment, for one test or a whole program."""

    def __init__(
        self, accounts: Accounts, used: Cgroup | Accounts, judges: Cgroup | Accounts | None
    ) -> None:
        self._accounts, self._used, self._judges = accounts, used, judges
        self.started, self._worked, self._judged = time.monotonic(), 0.0, 0.0

    def begin(self, *, read: bool = True) -> None:
        self.started = time.monotonic()
        if not read:
            return
        self._worked = self._used.cpu_s()
        self._judged = self._judges.cpu_s() if self._judges else 0.0

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def cpu_s(self) -> float:
        """Return the CPU seconds of the program's processes."""
        return self._used.cpu_s() - self._worked

    def late(self, wall_s: float) -> bool:
        """Whether the wall clock has run out. CPU time of the judge, and time that the program
        waited for a core, are not counted, up to `wall_s` in total.
        """
        seconds = self.seconds()
        if seconds <= wall_s:
            return False
        judging = self._judges.cpu_s() - self._judged if self._judges else 0.0
        return seconds - min(judging + self._accounts.starved_s(), wall_s) > wall_s

    def worked(self, cpu_s: float) -> bool:
        """Whether more CPU time than this was used."""
        return self.seconds() * CORES > cpu_s and self.cpu_s() > cpu_s


class Watch:
    """Reads messages, output and exits of the processes of one attempt. Nothing that is read is
    trusted.
    """

    def __init__(
        self,
        slots: list[Slot],
        results: int,
        outputs: list[int],
        limits: Limits,
        *,
        owner: int,
        speaker: str,
        messages: int,
        gate: int | None = None,
    ) -> None:
        """slots: the program's, then the judge's if there is one.
        limits: if they have totals, what is left of them for this program.
        speaker: the role whose exit ends the results.
        messages: how many to expect; anything after them is not read.
        gate: the descriptor that the program waits on after it has been set up.
        """
        self.slot, self.limits, self.owner, self.speaker = slots[0], limits, owner, speaker
        self.results, self.outputs, self.gate = results, outputs, gate
        self._due = messages
        self.printed, self.errors = bytearray(), bytearray()  # contents of the outputs
        self.output_bytes = 0
        self._idle = False  # nothing arrived in the last tick
        self.exits: dict[str, int] = {}
        self.peak = 0
        self.on_exit: dict[str, Any] = {}
        self._frames: deque[bytes] = deque()
        self._bytes = 0  # size of these frames
        self._most_bytes = limits.memory_mb * 2**20
        self._reader = Frames(min(MAX_FRAME, self._most_bytes))
        self._too_long = ""
        self._poll = select.poll()
        self._open = {results, *outputs}
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        self._zygotes = {slot.control.fileno(): slot for slot in slots}
        self._denied = {slot.denied.handle: slot.denied for slot in slots if slot.denied}
        for descriptor in (*self._zygotes, *self._denied):
            self._poll.register(descriptor, select.POLLIN)
        self._poll.register(owner, select.POLLIN)
        cgroup = self.slot.cgroup
        self._kills = cgroup.oom_kills() if cgroup else 0
        judges = slots[1].cgroup or slots[1].accounts if len(slots) > 1 else None
        self.test, self.whole = (
            Span(self.slot.accounts, cgroup or self.slot.accounts, judges) for _ in range(2)
        )
        self._tick_s = TICK_S if cgroup else SAMPLE_S
        # when to check the limits that the kernel does not enforce
        self._next_check = time.monotonic() + self._tick_s
        self._output_kb = (
            limits.output_kb
            if limits.total_output_kb is None
            else min(limits.output_kb, limits.total_output_kb)
        )

    def await_set_up(self) -> None:
        """Wait until the process reports that it is set up. Raises Broken: a failure here is never
        the program's, which has not run yet.
        """
        begun = time.monotonic()
        while not self._frames:
            if self.speaker in self.exits or time.monotonic() - begun > START_S:
                raise Broken(f"a process could not be set up: {self.exits or 'no message'}")
            self._pump(START_S)
        if self._frames.popleft() != b"S":
            raise Broken("a process could not be set up: unknown first message")
        if self.gate is not None:
            self._open_gate(self.gate)
        self.test.begin()
        self.whole.begin()

    def _open_gate(self, gate: int) -> None:
        try:
            os.write(gate, b"g")
        except BrokenPipeError:
            raise Broken("a process ended before it could run its program") from None
        finally:
            os.close(gate)

    def rest(self) -> list[bytes]:
        """Return all frames that arrived and were not read."""
        return list(self._frames)

    def begin(self) -> None:
        """Start the clock of the next test. If its answer has already arrived, the test is over and
        its CPU time is not read.
        """
        self.test.begin(read=not self._frames)

    def seconds(self) -> float:
        return self.test.seconds()

    def remaining_limits(self) -> Limits:
        """Return the limits for the program's next run: the totals minus what this run used."""
        limits = self.limits
        return replace(
            limits,
            total_wall_s=None
            if limits.total_wall_s is None
            else max(0.0, limits.total_wall_s - self.whole.seconds()),
            total_cpu_s=None
            if limits.total_cpu_s is None
            else max(0.0, limits.total_cpu_s - self.whole.cpu_s()),
            total_output_kb=None
            if limits.total_output_kb is None
            else max(0, limits.total_output_kb - self.output_bytes // 1024),
        )

    def next(self) -> bytes | Stop:
        """Return the next frame, or the reason why there is none."""
        while True:
            if stop := self.over(clock=not self._frames):  # a frame that has arrived was in time
                return stop
            if self._frames:
                return self._next_frame()
            if self.speaker in self.exits:
                self._drain()
                if not self._frames:
                    return self.over(clock=False) or self.ending(self.exits[self.speaker])
                continue
            self._pump(self._remaining_s())

    def _next_frame(self) -> bytes | Stop:
        """Return the next frame, unless parsing it would take more memory than the program may
        have.
        """
        message = self._frames.popleft()
        self._bytes -= len(message)
        if len(message) > SMALL and tree_bytes(message) > self._most_bytes:
            return Stop(
                Verdict.OLE, f"an answer that takes more than {self.limits.memory_mb} MB to read"
            )
        return message

    def exit(self, role: str = "program") -> int | Stop:
        """Wait until this process has ended and all its output is read. Return its wait status, or
        why the wait was stopped.
        """
        while role not in self.exits:
            if stop := self.over():
                return stop
            self._pump(self._remaining_s())
        self._drain()
        return self.over(clock=False) or self.exits[role]

    def over(self, *, clock: bool = True) -> Stop | None:
        """Return the limit that is exceeded now, if any. The wall clock is checked only with
        `clock`. Memory is checked when nothing arrives, and once more at the end of the job.
        """
        if self.output_bytes > self._output_kb * 1024:
            return Stop(Verdict.OLE, f"more than {self._output_kb} kB of output")
        if self._too_long:
            return Stop(Verdict.OLE, self._too_long)
        if clock and self._idle and self.out_of_memory():
            return self._too_much_memory()
        late = self._late(clock=clock)
        # A program that filled its memory may also run out of time on a busy machine, so memory is
        # checked first.
        return self._sampled(at_once=late is not None) or late

    def _late(self, *, clock: bool) -> Stop | None:
        if clock and self.test.late(self.limits.wall_s):
            return Stop(Verdict.TLE, f"more than {self.limits.wall_s:g} s")
        if self.test.worked(self.limits.cpu_s):
            return Stop(Verdict.TLE, f"more than {self.limits.cpu_s:g} s of CPU")
        if (
            clock
            and self.limits.total_wall_s is not None
            and self.whole.late(self.limits.total_wall_s)
        ):
            return Stop(Verdict.TLE, "more time than its tests have together")
        if self.limits.total_cpu_s is not None and self.whole.worked(self.limits.total_cpu_s):
            return Stop(Verdict.TLE, "more CPU time than its tests have together")
        return None

    def _sampled(self, *, at_once: bool) -> Stop | None:
        """Check the limits that the kernel does not enforce here."""
        if (now := time.monotonic()) < self._next_check and not at_once:
            return None
        excess = "" if self.slot.cgroup else self.slot.accounts.excess()
        files = self.slot.scratch_bytes() if self.slot.scratch else 0
        self._next_check = time.monotonic() + max(self._tick_s, REST * (time.monotonic() - now))
        if excess == "memory":
            return self._too_much_memory()
        if excess:
            return Stop(Verdict.RE, f"more than {self.limits.processes} {excess}")
        return (
            Stop(Verdict.RE, f"more than {SCRATCH_BYTES >> 20} MB of files")
            if files > SCRATCH_BYTES
            else None
        )

    def out_of_memory(self) -> bool:
        return self.slot.cgroup is not None and self.slot.cgroup.oom_kills() > self._kills

    def _too_much_memory(self) -> Stop:
        return Stop(Verdict.MLE, f"more than {self.limits.memory_mb} MB of memory")

    def ending(self, status: int) -> Stop:
        """Return the meaning of the wait status of a process that should not have ended."""
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGKILL and self.out_of_memory():
                return self._too_much_memory()
            if number == signal.SIGXCPU or (
                number == signal.SIGKILL and self.test.cpu_s() >= self.limits.cpu_s - 0.1
            ):
                return Stop(Verdict.TLE, "out of CPU time")
            return Stop(Verdict.RE, f"killed by signal {number}")
        return Stop(Verdict.RE, f"left with status {os.WEXITSTATUS(status)}")

    def close(self) -> None:
        for descriptor in (self.results, *self.outputs):
            os.close(descriptor)

    def _remaining_s(self) -> float:
        """Return how long to wait before the limits are checked again."""
        return max(self.limits.wall_s - self.seconds(), LATE_TICK_S)

    def _pump(self, timeout_s: float) -> None:
        ready = self._poll.poll(max(0.0, min(timeout_s, self._tick_s)) * 1000)
        self._idle = not ready
        for descriptor, event in ready:
            if descriptor == self.owner:
                raise SystemExit(0)  # nobody waits for the report
            if descriptor in self._denied:
                # Without POLLIN no process is left that could make a call, and receiving would
                # block.
                if event & select.POLLIN:
                    self._denied[descriptor].answer()
                else:
                    self._poll.unregister(descriptor)
                continue
            if descriptor in self._zygotes:
                self._receive_exit(self._zygotes[descriptor])
            else:
                self._read(descriptor)

    def _receive_exit(self, slot: Slot) -> None:
        try:
            message = slot.control.recv(65536)
        except OSError:
            message = b""
        if not message:
            raise Broken("the zygote died")
        _, role, status, peak = message.decode().split()
        self.exits[role] = int(status)
        self.peak = max(self.peak, int(peak))
        if hook := self.on_exit.pop(role, None):
            hook()

    def _read(self, descriptor: int) -> int:
        """Read from a descriptor and return the number of bytes; 0 when there is nothing to read
        now or ever again.
        """
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            self._stop_reading(descriptor)
        elif descriptor == self.results:
            self._receive(data)
        else:
            self.output_bytes += len(data)
            if descriptor == self.outputs[0]:
                self.printed += data
            else:
                self.errors += data
        return len(data)

    def _receive(self, data: bytes) -> None:
        """Take the expected number of messages. What the program or its children write beyond them
        stays in the pipe.
        """
        try:
            for message in islice(self._reader.feed(data), self._due):
                self._frames.append(message)
                self._bytes += len(message)
                self._due -= 1
        except TooLong as error:
            self._too_long = str(error)
        if self._bytes > self._most_bytes:
            self._too_long = f"more than {self.limits.memory_mb} MB of answers"
        if self._due == 0:
            self._stop_reading(self.results)

    def _stop_reading(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        self._open.discard(descriptor)

    def _drain(self) -> None:
        """Read what is there now and no more: a child of the program may hold the pipe and write
        forever.
        """
        for descriptor in list(self._open):
            available = struct.unpack("i", fcntl.ioctl(descriptor, FIONREAD, bytes(4)))[0]
            while (
                available > 0
                and descriptor in self._open
                and not self._too_long
                and self.output_bytes <= self._output_kb * 1024
            ):
                available -= self._read(descriptor) or available
