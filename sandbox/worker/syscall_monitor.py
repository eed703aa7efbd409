"""Answers and counts refused system calls in a process that the program cannot reach.

The filter (isolation/seccomp.py) passes a refused call to this listener instead of failing it. The
caller waits in the kernel for the answer, so no call is lost and none can be invented. The
program's own processes cannot obtain the listener: the filter refuses a second one, and only this
process has the descriptor. What is allowed never depends on the program's memory, which may change
while it is read; registers cannot. Calls that are only watched are allowed, and counted by what
they try (sandbox/worker/call_counter.py).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import struct

from sandbox.isolation.accounts import Accounts
from sandbox.isolation.seccomp import (
    ATTRIBUTES,
    FORKS,
    MEMFD,
    MMAP,
    NAMES,
    NEW_NAMESPACES,
    OF_THE_ZYGOTE,
    OPEN,
    OPENAT,
    OPENAT2,
    PROBED,
    SIGNALS,
    SOCKET,
    UNIX,
)
from sandbox.worker.call_counter import PLACES, CallCounter, lines

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE, _ANSWER = struct.Struct("<QIIiIQ6Q"), struct.Struct("<QqiI")
_CONTINUE = 1
_OF_THE_ZYGOTE = {
    *OF_THE_ZYGOTE.values(),
    *SIGNALS.values(),
    *ATTRIBUTES.values(),
    *FORKS.values(),
    MEMFD,
    MMAP,
}
ANONYMOUS = 0x20  # of mmap
FLAGS, ACCESS, TRUNCATE = {OPEN: 1, OPENAT: 2}, 0o3, 0o1000
_DEPTH = 256  # maximum depth of a program's process tree


class Denied:
    """One zygote's listener. Call it only if its descriptor polls readable; otherwise the kernel
    blocks the call.
    """

    def __init__(
        self, handle: int, zygote: int, call_counter: CallCounter, *, emptying: bool
    ) -> None:
        """zygote: its pid as seen from here; its own calls are allowed. emptying: refuse to
        truncate a file by opening it for reading.
        """
        self.handle, self.zygote, self.call_counter = handle, zygote, call_counter
        self.emptying = emptying
        self.accounts: Accounts | None = None  # what its programs may still use
        self.counts: dict[str, int] = {}
        self.complete = False

    def answer(self) -> None:
        """Answer one call: refuse and count it, or allow it."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.handle, _RECEIVE, notice)
        except OSError:  # the caller is dead
            return
        number, pid, _, call, _, _, *arguments = _NOTICE.unpack(notice)
        if (
            (call in self.call_counter.watched and pid != self.zygote)
            or call == SOCKET
            or call in PLACES
        ):
            self.call_counter.count(pid, call, arguments)
        error = self._error(pid, call, arguments)
        with contextlib.suppress(OSError):
            fcntl.ioctl(
                self.handle, _SEND, _ANSWER.pack(number, 0, -error, 0 if error else _CONTINUE)
            )
        if error == errno.EPERM:
            name = (
                "unix socket"
                if call == SOCKET and arguments[0] & 0xFFFFFFFF == UNIX
                else NAMES.get(call, f"call {call}")
            )
            self.counts[name] = self.counts.get(name, 0) + 1

    def _error(self, pid: int, call: int, arguments: list[int]) -> int:
        """Return 0 if the call is allowed; the kernel's usual error if a limit is reached; EPERM
        for what is refused to every program.
        """
        if pid == self.zygote and (call in _OF_THE_ZYGOTE or call in self.call_counter.watched):
            return 0
        if call in SIGNALS.values() and pid != self.zygote:
            return 0 if self._may_signal(call, arguments[0]) else errno.EPERM
        if call in FORKS.values() and not (
            call == FORKS["clone"] and arguments[0] & NEW_NAMESPACES
        ):
            return 0 if self.accounts is None or self.accounts.may_fork() else errno.EAGAIN
        if call == MMAP:
            free = self.accounts is None or (
                not arguments[3] & ANONYMOUS
                and self.accounts.is_file(pid, arguments[4] & 0xFFFFFFFF)
            )
            return (
                0
                if free or (self.accounts and self.accounts.may_share(arguments[1]))
                else errno.ENOMEM
            )
        if call == OPENAT2 and self.emptying:
            return errno.ENOSYS  # its flags lie in memory; libc falls back to openat
        if (
            call in FLAGS
            and self.emptying
            and arguments[FLAGS[call]] & (ACCESS | TRUNCATE) == TRUNCATE
        ):
            return errno.EPERM
        return 0 if call in self.call_counter.watched else errno.EPERM

    def _may_signal(self, call: int, target: int) -> bool:
        target = target - (1 << 32) if target & 0x80000000 else target & 0x7FFFFFFF
        if target == 0:
            return True  # its own process group, which is in its own session
        return target != -1 and self._below(abs(target) if call == SIGNALS["kill"] else target)

    def _below(self, pid: int) -> bool:
        """Whether this is a process or thread of the current job: a descendant of the zygote."""
        for _ in range(_DEPTH):
            if pid <= 1:
                return False
            try:
                status = dict(line.split(":", 1) for line in lines(f"/proc/{pid}/status") if line)
            except OSError:
                return False
            if (pid := int(status["PPid"])) == self.zygote:
                return True
        return False

    def take(self) -> tuple[dict[str, int], dict[str, int]] | tuple[None, None]:
        """Return what was refused since the last call, by name, and what was tried, by kind; None
        if some calls do not reach the listener.
        """
        counts, self.counts = self.counts, {}
        attempts = self.call_counter.take(counts)
        return (counts, attempts) if self.complete else (None, None)

    def evaluate_probe(self) -> None:
        """Evaluate the probe, which has ended. If a filter above ours (a container runtime's)
        answers a call itself, the call is refused without reaching the listener.
        """
        self.complete = set(PROBED) <= set(self.counts)
        self.take()
