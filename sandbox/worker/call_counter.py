"""Counts what a program tried, by kind, from the system calls that the seccomp filter passes to the
listener and that are allowed.

Kinds:
- `exec`: a process became another program
- `socket`: a network socket, or a connection to a socket of the system
- `file`: write access to a file outside the program's own folders, or read access to one that is
  not public
- `call`: another refused call
Calls that the interpreter and its libraries make on their own are not counted: imports, temporary
files, lookups of libc, an exec of the interpreter itself or of `uname`.

A path lies in the program's memory and may change while it is read. It affects only this count: the
kernel decides what a call can reach. Which file a process executes is read from the kernel after
the new program has started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from sandbox.isolation import seccomp

# STARTS: set_tid_address, the first call of a loader, and not made by a fork.
EXEC, EXEC_AT, STARTS, SOCKET, CONNECT, OPEN_HOW = 59, 322, 218, 41, 42, 437
# Positions of the folder's descriptor and of the path in an open; the flags come next.
OPENS = {2: (None, 0), 257: (0, 1), OPEN_HOW: (0, 1)}
# Calls that change what a path names: pairs of positions of descriptor and path.
CHANGES: dict[int, tuple[tuple[int | None, int], ...]] = {
    85: ((None, 0),), 83: ((None, 0),), 258: ((0, 1),), 84: ((None, 0),), 87: ((None, 0),),
    263: ((0, 1),),
    82: ((None, 0), (None, 1)), 264: ((0, 1), (2, 3)), 316: ((0, 1), (2, 3)),
    86: ((None, 0), (None, 1)), 265: ((0, 1), (2, 3)),
    88: ((None, 1),), 266: ((1, 2),), 133: ((None, 0),), 259: ((0, 1),),
}  # fmt: skip
# Calls that change a file's attributes. Where programs have the uid of other files these are
# refused, so they are watched only on other levels.
ATTRIBUTES: dict[int, tuple[tuple[int | None, int], ...]] = {
    90: ((None, 0),), 268: ((0, 1),), 452: ((0, 1),), 92: ((None, 0),), 94: ((None, 0),),
    260: ((0, 1),), 76: ((None, 0),), 132: ((None, 0),),
    235: ((None, 0),), 261: ((0, 1),), 280: ((0, 1),), 188: ((None, 0),), 189: ((None, 0),),
    197: ((None, 0),), 198: ((None, 0),),
}  # fmt: skip
PLACES = CHANGES | ATTRIBUTES
DEVICE_NODES = {133: 1, 259: 2}  # mknod, mknodat: position of the file type
LINKS = {88: (None, 0), 266: (None, 0)}  # symlink, symlinkat: position of the target
WATCHED = (EXEC, EXEC_AT, STARTS, CONNECT, *OPENS, *CHANGES)

# refused, but used by ordinary libraries, or by a program about itself
HARMLESS = {
    "unix socket", "setpriority", "ioprio_set", "inotify_init", "inotify_init1", "prlimit64",
    "sched_setaffinity", "sched_setparam",
    "sched_setscheduler", "sched_setattr", "get_robust_list", "name_to_handle_at", "mincore",
    "memfd_create", "sendmsg", "sendmmsg",
}  # fmt: skip
# these count by the paths they reach, if they have any
HARMLESS |= {"open", "openat", *seccomp.ATTRIBUTES, *seccomp.LEFTOVERS}
OWN = ("/scratch", "/tmp", "/var/tmp", "/dev/shm")  # as programs name them
DEVICES = re.compile(r"/dev/(null|zero|full|u?random|tty|std(in|out|err)|fd(/\d+)?)$")
PUBLIC = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/sys", "/packages",
)  # fmt: skip
SECRET = re.compile(
    r"/etc/(g?shadow|sudoers|ssh/|ssl/private|krb5\.keytab|security/opasswd)|/usr/src/"
    r"|/sys/kernel/(debug|security)|.*/\.(ssh|aws|gnupg|netrc|kube|docker)\b"
)
KERNEL = re.compile(r"/proc/(kcore|kmsg|kmem|sysrq-trigger|keys|acpi|bus|scsi|vmcore)\b")
PROCESS = re.compile(r"/proc/(self|thread-self|\d+)(?:/task/\d+)?(?:/(.*))?$")
MEMORY = re.compile(
    r"(mem|maps|smaps|environ|auxv|syscall|stack|fd|fdinfo|map_files|root|cwd|exe)(/|$)"
)
# what libc and its name services open on their own
LIBC = (
    "/var/lib/libuuid/",
    "/run/uuidd/",
    "/run/nscd/",
    "/var/db/nscd/",
    "/var/cache/nscd/",
    "/var/lib/sss/",
    "/run/systemd/userdb",
    "/dev/log",
)
SCRATCH = re.compile(r"/ratchet-scratch-\d+-")
# the system's libuuid, in /proc/PID/maps
LIBRARY = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (?:\S+ +){4}(?:/usr)?/lib[^\n]*/libuuid\.so[.0-9]*$")
# A traceback reads the source of its frames.
OURS = re.compile(
    re.escape(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))) + r"/(\w+/)?\w+\.py$"
)
CACHE = re.compile(r"/__pycache__(/[^/]+\.pyc(\.\d+)?)?$")
ACCESS, CREATE, TRUNCATE, AT_CWD = 3, 0o100, 0o1000, 0xFFFFFF9C
KIND, DEVICE_KINDS = 0o170000, (0o020000, 0o060000)
MAX_PATH, MAX_LINKS = 4096, 40
UNIX, INTERNET, INTERNET_6, DATAGRAM = 1, 2, 10, 2
LOOPBACK_6 = bytes(15) + b"\1"
IN_ROOT = 0x10  # RESOLVE_IN_ROOT of openat2

_libc = ctypes.CDLL(None, use_errno=True)


class CallCounter:
    """Counts for the processes of one zygote, since the last `take`."""

    def __init__(self, home: str, packages: Iterable[str] = (), *, namespaces: bool = True) -> None:
        """home: the programs' own folder.
        packages: folders of packages that they may import.
        namespaces: whether the isolation level has any.
        """
        self.watched = frozenset((*WATCHED, *ATTRIBUTES) if namespaces else WATCHED)
        # _sees: a program's memory was readable at least once
        self._namespaces, self._sees = namespaces, False
        self._home, self._own = home, (*OWN, home)
        folders = {
            sys.base_prefix,
            sys.prefix,
            *(os.path.dirname(os.path.realpath(path)) for path in packages),
        } - {"/"}
        self._public = (*PUBLIC, *folders, f"{os.path.dirname(home)}/packages")
        self._counts: Counter[str] = Counter()
        # Calls of exec, by process, that have not become another program yet.
        self._pending: Counter[int] = Counter()
        self._blind = False  # a path could not be read
        self._ours = _OURS
        # The program has created symbolic links, so the text of a path no longer says where it
        # leads.
        self._linked = False

    def count(self, pid: int, call: int, arguments: list[int]) -> None:
        """Count one call that waits for its answer: one of `watched`, or a refused socket. pid is
        the thread that makes it.
        """
        try:
            if call == SOCKET:
                self._counts["socket"] += not _is_libs(pid, arguments)
            elif call in (EXEC, EXEC_AT):
                self._exec(pid)
            elif call == STARTS:
                calls = self._pending.pop(pid, 0)
                self._counts["exec"] += 0 if self._executes_ours(pid) else calls
            elif call == CONNECT:
                self._counts["socket"] += self._connects(pid, arguments)
            elif call in DEVICE_NODES and arguments[DEVICE_NODES[call]] & KIND in DEVICE_KINDS:
                self._counts["call"] += 1
            else:
                self._counts["file"] += self._reaches(pid, call, arguments)
                self._sees = True
        except PermissionError:
            if self._namespaces and self._sees:  # the program has made its memory unreadable
                self._counts["call"] += 1
            self._blind = True
        except (OSError, OverflowError):
            # It has died, or the address is invalid, which the kernel reports too.
            pass
        except (LookupError, ValueError):
            # The call must be answered whatever a program makes /proc show.
            self._blind = True

    def settle(self) -> None:
        """Prepare for the end of the job. A process that still runs the interpreter has not become
        another program, and no longer can.
        """
        for pid in list(self._pending):
            with contextlib.suppress(OSError):  # it has ended
                ours = self._executes_ours(pid)
                if ours or (ours is None and not self._namespaces):
                    del self._pending[pid]

    def take(self, refused: Mapping[str, int]) -> dict[str, int]:
        """Return the counts by kind since the last call, including zeros. A kind that could not be
        counted is absent. refused: refused calls by name.
        """
        counts, pending, blind = self._counts, sum(self._pending.values()), self._blind
        self._counts, self._pending, self._blind, self._linked = Counter(), Counter(), False, False
        calls = counts["call"] + sum(
            number for name, number in refused.items() if name not in HARMLESS and name != "socket"
        )
        attempts = {"call": calls, "exec": counts["exec"] + pending, "socket": counts["socket"]}
        return attempts if blind else attempts | {"file": counts["file"]}

    def expect(self, program: str | int) -> None:
        """Do not count an exec of this program (a path or a descriptor): a process becomes it."""
        status = os.stat(program)
        self._ours = _OURS | {(status.st_dev, status.st_ino)}

    def _executes_ours(self, pid: int) -> bool | None:
        """Whether this process runs the interpreter, `uname` or what was expected. None if that
        cannot be read.
        """
        try:
            status = os.stat(f"/proc/{pid}/exe")
        except PermissionError:
            return None
        return (status.st_dev, status.st_ino) in self._ours

    def _exec(self, pid: int) -> None:
        """Count an exec. A search along PATH makes many calls; each counts, unless the interpreter
        results.
        """
        if self._executes_ours(pid) is False:
            self._counts["exec"] += 1
        else:
            self._pending[pid] += 1

    def _connects(self, pid: int, arguments: list[int]) -> bool:
        """Whether this is a connection to a named socket of another program, or to another
        machine.
        """
        address = _memory(pid, arguments[1], min(arguments[2] & 0xFFFF, 110))
        family = int.from_bytes(address[:2], "little")
        if family == INTERNET:
            return address[4:5] != b"\x7f"
        if family == INTERNET_6:
            return address[8:24] != LOOPBACK_6
        if family != UNIX or len(address) < 4 or not address[2]:
            return False
        path = self._absolute(pid, None, os.fsdecode(address[2:].split(b"\0")[0]))
        return not path.startswith((*LIBC, *(f"{folder}/" for folder in self._own)))

    def _reaches(self, pid: int, call: int, arguments: list[int]) -> bool:
        """Whether a path of this call is outside what the program may use."""
        if call in OPENS:
            folder, at = OPENS[call]
            flags = arguments[at + 1]
            if call == OPEN_HOW:
                flags = int.from_bytes(_memory(pid, flags, 8), "little")
            path = self._path(pid, arguments, folder, at)
            if flags & (ACCESS | CREATE | TRUNCATE):
                return self._outside(pid, path)
            # Opening a missing file is not an attempt, unless its path is a secret.
            return self._private(pid, path) and (
                bool(SECRET.match(path)) or os.path.lexists(f"/proc/{pid}/root{path}")
            )
        if call in LINKS:
            self._linked = True
            _, at = LINKS[call]
            folder, where = CHANGES[call][0]
            folder_of_link = os.path.dirname(self._path(pid, arguments, folder, where))
            target = os.path.join(folder_of_link, _text(pid, arguments[at]))
            if self._outside(pid, os.path.normpath(target)):
                return True
        if not arguments[PLACES[call][0][1]]:
            return False  # no path: the call is about the descriptor
        return any(self._outside(pid, self._path(pid, arguments, *place)) for place in PLACES[call])

    def _path(self, pid: int, arguments: list[int], folder: int | None, at: int) -> str:
        return self._absolute(
            pid,
            None if folder is None else arguments[folder] & 0xFFFFFFFF,
            _text(pid, arguments[at]),
        )

    def _absolute(self, pid: int, folder: int | None, path: str, steps: int = MAX_LINKS) -> str:
        """Return the path as the program's root shows it.

        folder: the descriptor that the path is relative to.
        steps: how many descriptors to follow at most, as one may refer to itself.
        """
        if not path.startswith("/"):
            entry = "cwd" if folder in (None, AT_CWD) else f"fd/{folder}"
            path = f"{os.readlink(f'/proc/{pid}/{entry}')}/{path}"
        if self._linked:
            path = _resolved(pid, path)
        path = re.sub("^/+", "/", os.path.normpath(path))
        if match := re.match(
            r"/proc/(self|thread-self|\d+)(?:/task/\d+)?/(root|cwd|fd/\d+)(/.+)$", path
        ):
            if not steps or (match[1].isdigit() and not _is(pid, match[1])):
                return path
            start = os.readlink(f"/proc/{pid}/{match[2]}") if match[2] != "root" else ""
            return self._absolute(pid, None, start + match[3], steps - 1)
        return "/run" + path.removeprefix("/var/run") if path.startswith("/var/run/") else path

    def _outside(self, pid: int, path: str) -> bool:
        """Whether this file is not the program's to change."""
        if SCRATCH.search(path) and not _below(path, [self._home]):
            return True  # the folder of another slot, on a level without namespaces
        if (
            _below(path, self._own)
            or DEVICES.match(path)
            or path.startswith(LIBC)
            or CACHE.search(path)
        ):
            return False
        match = PROCESS.match(path)
        return not (match and (not match[1].isdigit() or _is(pid, match[1])))

    def _private(self, pid: int, path: str) -> bool:
        """Whether this file is not publicly readable."""
        if SECRET.match(path) or KERNEL.match(path):
            return True
        if match := PROCESS.match(path):
            return (
                match[1].isdigit() and bool(MEMORY.match(match[2] or "")) and not _is(pid, match[1])
            )
        if (
            path in ("/", "/proc", "/dev", "/var", "/run")
            or path.startswith("/proc/")
            or _below(path, self._public)
            or OURS.match(path)
        ):
            return False
        return self._outside(pid, path)


def lines(path: str) -> list[str]:
    """Return the lines of a file of /proc. Programs choose names in it, which may contain any byte
    except a line end.
    """
    return Path(path).read_bytes().decode(errors="replace").split("\n")


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _memory(pid: int, address: int, size: int) -> bytes:
    handle = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, size, address)
    finally:
        os.close(handle)


def _text(pid: int, address: int) -> str:
    """Read a path from the memory of this process."""
    return os.fsdecode(_memory(pid, address, MAX_PATH).split(b"\0", 1)[0])


def _resolved(pid: int, path: str) -> str:
    """Return where the kernel resolves this path from the root of that process, with links
    followed; the path itself if that fails.
    """
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    try:
        for folder_path, last in (
            (path, ""),
            (os.path.dirname(path), f"/{os.path.basename(path)}"),
        ):
            flags = struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, IN_ROOT)
            descriptor = _libc.syscall(OPEN_HOW, root, os.fsencode(folder_path), flags, len(flags))
            if descriptor >= 0:
                try:
                    return os.readlink(f"/proc/self/fd/{descriptor}") + last
                finally:
                    os.close(descriptor)
        return path
    finally:
        os.close(root)


def _is_libs(pid: int, arguments: list[int]) -> bool:
    """Whether a library opens this socket on its own: for libc's name services, or in libuuid,
    which reads the network card's address.
    """
    family, kind, protocol = (argument & 0xFFFFFFFF for argument in arguments[:3])
    if family == UNIX:
        return True
    if (family, kind, protocol) != (INTERNET, DATAGRAM, 0):
        return False
    try:
        words = Path(f"/proc/{pid}/syscall").read_text().split()
        if len(words) < 2:
            return False  # a signal arrived in between
        # The return address of libc's function.
        caller = int.from_bytes(_memory(pid, int(words[-2], 16), 8), "little")
        maps = lines(f"/proc/{pid}/maps")
    except PermissionError:
        return True  # nothing else opens a socket like this
    ranges = (LIBRARY.match(line) for line in maps)
    return any(int(found[1], 16) <= caller < int(found[2], 16) for found in ranges if found)


def _is(pid: int, number: str) -> bool:
    """Whether this process has that pid inside its namespace."""
    own = (line for line in lines(f"/proc/{pid}/status") if line.startswith(("NSpid:", "NStgid:")))
    return any(line.split()[-1] == number for line in own)


def _identities() -> set[tuple[int, int]]:
    paths = [sys.executable, getattr(sys, "_base_executable", ""), shutil.which("uname") or ""]
    return {
        (status.st_dev, status.st_ino)
        for path in paths
        if os.path.exists(path)
        for status in [os.stat(path)]
    }


_OURS = _identities()
