"""Calls that the filter refused, answered and counted by a process that the program cannot reach.

The filter (sandbox/seccomp.py) hands a refused call to this listener instead of failing it: the caller waits in the kernel until it is answered, so
no call is lost and none can be invented. The program's own processes cannot have the listener: the filter refuses a second one, and the descriptor is
here alone. Nothing here reads the program's memory: what a call points at may change while it is looked at, its registers cannot.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import struct
from pathlib import Path

from sandbox.seccomp import NAMES, OF_THE_ZYGOTE, PROBED, SIGNALS

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE, _ANSWER = struct.Struct("<QIIiIQ6Q"), struct.Struct("<QqiI")
_CONTINUE = 1
_DEPTH = 256  # of a program's processes below each other


class Denied:
    """One zygote's listener. To be called only when its descriptor polls readable, else the kernel lets us wait."""

    def __init__(self, handle: int, zygote: int) -> None:
        """zygote: its pid as we see it; what it asks for is ours."""
        self.handle, self.zygote = handle, zygote
        self.counts: dict[str, int] = {}
        self.complete = False

    def answer(self) -> None:
        """Answers one call: refused and counted, or let through."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.handle, _RECEIVE, notice)
        except OSError:  # who asked is dead
            return
        number, pid, _, call, _, _, *arguments = _NOTICE.unpack(notice)
        if allowed := self._allowed(pid, call, arguments):
            answer = _ANSWER.pack(number, 0, 0, _CONTINUE)
        else:
            answer = _ANSWER.pack(number, 0, -errno.EPERM, 0)
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.handle, _SEND, answer)
        if not allowed:
            name = NAMES.get(call, f"call {call}")
            self.counts[name] = self.counts.get(name, 0) + 1

    def _allowed(self, pid: int, call: int, arguments: list[int]) -> bool:
        if pid == self.zygote:
            return call in OF_THE_ZYGOTE.values() or call in SIGNALS.values()
        if call not in SIGNALS.values():
            return False
        target = arguments[0] - (1 << 32) if arguments[0] & 0x80000000 else arguments[0] & 0x7FFFFFFF
        if target == 0:
            return True  # its own process group, which lies in its own session
        return target != -1 and self._below(abs(target) if call == SIGNALS["kill"] else target)

    def _below(self, pid: int) -> bool:
        """Whether this is a process, or a thread, of the job that runs now: the zygote's descendant."""
        for _ in range(_DEPTH):
            if pid <= 1:
                return False
            try:
                status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines())
            except OSError:
                return False
            if (pid := int(status["PPid"])) == self.zygote:
                return True
        return False

    def take(self) -> dict[str, int] | None:
        """What was refused since the last call, by name; None where not every call is heard of."""
        counts, self.counts = self.counts, {}
        return counts if self.complete else None

    def heard_the_probe(self) -> None:
        """The probe has ended. Where a filter above ours (a container runtime's) answers a call itself, it is refused and we do not hear of it."""
        self.complete = set(PROBED) <= set(self.counts)
        self.counts = {}
