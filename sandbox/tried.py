"""What a program tried, by kind, from the calls that the filter hands to the listener and that are let through.

Kinds: `exec` (a process became another program), `socket` (a network socket, or a connection to a socket of the system), `file` (a file outside
the program's own folders was to be written, or one that is not public was to be read) and `call` (another refused call). What the interpreter and
its libraries do on their own is not counted: imports, temporary files, libc's look-ups, an exec of the interpreter itself or of `uname`.

A path lies in the program's memory, and may change while it is looked at. It decides nothing but this count: what a call reaches is decided by the
kernel. Which file a process executes is asked of the kernel when the new program has started.
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

from sandbox import seccomp

EXEC, EXEC_AT, STARTS, SOCKET, CONNECT, OPEN_HOW = (
    59,
    322,
    218,
    41,
    42,
    437,
)  # STARTS: set_tid_address, a loader's first word, and of no fork
OPENS = {
    2: (None, 0),
    257: (0, 1),
    OPEN_HOW: (0, 1),
}  # where an open has its folder's descriptor and its path; its flags come next
# calls that change what a path names: pairs of descriptor and path, by position
CHANGES: dict[int, tuple[tuple[int | None, int], ...]] = {
    85: ((None, 0),), 83: ((None, 0),), 258: ((0, 1),), 84: ((None, 0),), 87: ((None, 0),), 263: ((0, 1),),
    82: ((None, 0), (None, 1)), 264: ((0, 1), (2, 3)), 316: ((0, 1), (2, 3)), 86: ((None, 0), (None, 1)), 265: ((0, 1), (2, 3)),
    88: ((None, 1),), 266: ((1, 2),), 133: ((None, 0),), 259: ((0, 1),),
}  # fmt: skip
# and those that change what belongs to a file; where programs have the uid of other files these are refused, so they are watched elsewhere alone
ATTRIBUTES: dict[int, tuple[tuple[int | None, int], ...]] = {
    90: ((None, 0),), 268: ((0, 1),), 452: ((0, 1),), 92: ((None, 0),), 94: ((None, 0),), 260: ((0, 1),), 76: ((None, 0),), 132: ((None, 0),),
    235: ((None, 0),), 261: ((0, 1),), 280: ((0, 1),), 188: ((None, 0),), 189: ((None, 0),), 197: ((None, 0),), 198: ((None, 0),),
}  # fmt: skip
PLACES = CHANGES | ATTRIBUTES
DEVICE_NODES = {133: 1, 259: 2}  # mknod, mknodat: where the kind stands
LINKS = {88: (None, 0), 266: (None, 0)}  # symlinks: where the target stands
WATCHED = (EXEC, EXEC_AT, STARTS, CONNECT, *OPENS, *CHANGES)

# refused, but asked for by ordinary libraries, or by a program about itself
HARMLESS = {
    "unix socket", "setpriority", "ioprio_set", "inotify_init", "inotify_init1", "prlimit64", "sched_setaffinity", "sched_setparam",
    "sched_setscheduler", "sched_setattr", "get_robust_list", "name_to_handle_at", "mincore", "memfd_create", "sendmsg", "sendmmsg",
}  # fmt: skip
HARMLESS |= {
    "open",
    "openat",
    *seccomp.ATTRIBUTES,
    *seccomp.LEFTOVERS,
}  # where their paths lead counts, if they have any
OWN = ("/scratch", "/tmp", "/var/tmp", "/dev/shm")  # as programs name them
DEVICES = re.compile(r"/dev/(null|zero|full|u?random|tty|std(in|out|err)|fd(/\d+)?)$")
PUBLIC = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/sys",
    "/packages",
)
SECRET = re.compile(
    r"/etc/(g?shadow|sudoers|ssh/|ssl/private|krb5\.keytab|security/opasswd)|/usr/src/|/sys/kernel/(debug|security)|.*/\.(ssh|aws|gnupg|netrc|kube|docker)\b"
)
KERNEL = re.compile(r"/proc/(kcore|kmsg|kmem|sysrq-trigger|keys|acpi|bus|scsi|vmcore)\b")
PROCESS = re.compile(r"/proc/(self|thread-self|\d+)(?:/task/\d+)?(?:/(.*))?$")
MEMORY = re.compile(
    r"(mem|maps|smaps|environ|auxv|syscall|stack|fd|fdinfo|map_files|root|cwd|exe)(/|$)"
)
# what libc and its name services ask of their own accord
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
LIBRARY = re.compile(
    r"([0-9a-f]+)-([0-9a-f]+) (?:\S+ +){4}(?:/usr)?/lib[^\n]*/libuuid\.so[.0-9]*$"
)  # of the system, in /proc/PID/maps
OURS = re.compile(
    re.escape(os.path.dirname(os.path.realpath(__file__))) + r"/\w+\.py$"
)  # a traceback reads the text of its frames
CACHE = re.compile(r"/__pycache__(/[^/]+\.pyc(\.\d+)?)?$")
ACCESS, CREATE, TRUNCATE, AT_CWD = 3, 0o100, 0o1000, 0xFFFFFF9C
KIND, DEVICE_KINDS = 0o170000, (0o020000, 0o060000)
MOST_PATH, MOST_LINKS = 4096, 40
UNIX, INTERNET, DATAGRAM = 1, 2, 2
IN_ROOT = 0x10  # RESOLVE_IN_ROOT of openat2

_libc = ctypes.CDLL(None, use_errno=True)


class Tried:
    """Of the processes of one zygote, since the last `take`."""

    def __init__(self, home: str, packages: Iterable[str] = (), *, namespaces: bool = True) -> None:
        """home: the programs' own folder. packages: folders of packages that they may import. namespaces: whether the level has any."""
        self.watched = frozenset((*WATCHED, *ATTRIBUTES) if namespaces else WATCHED)
        self._namespaces, self._sees = (
            namespaces,
            False,
        )  # sees: a program's memory has been read once
        self._home, self._own = home, (*OWN, home)
        folders = {
            sys.base_prefix,
            sys.prefix,
            *(os.path.dirname(os.path.realpath(path)) for path in packages),
        } - {"/"}
        self._public = (*PUBLIC, *folders, f"{os.path.dirname(home)}/packages")
        self._counts: Counter[str] = Counter()
        self._pending: Counter[int] = (
            Counter()
        )  # calls of exec, by process, that have not become another program yet
        self._blind = False  # a path could not be read
        self._linked = False  # the program has made symbolic links: then the text of a path does not say where it leads

    def look(self, pid: int, call: int, arguments: list[int]) -> None:
        """Counts one call that waits for its answer: one of `watched`, or a refused socket. pid is the thread that makes it."""
        try:
            if call == SOCKET:
                self._counts["socket"] += not _is_libs(pid, arguments)
            elif call in (EXEC, EXEC_AT):
                self._exec(pid)
            elif call == STARTS:
                calls = self._pending.pop(pid, 0)
                self._counts["exec"] += 0 if _executes_ours(pid) else calls
            elif call == CONNECT:
                self._counts["socket"] += self._connects(pid, arguments)
            elif call in DEVICE_NODES and arguments[DEVICE_NODES[call]] & KIND in DEVICE_KINDS:
                self._counts["call"] += 1
            else:
                self._counts["file"] += self._reaches(pid, call, arguments)
                self._sees = True
        except PermissionError:
            if self._namespaces and self._sees:  # then it has hidden itself
                self._counts["call"] += 1
            self._blind = True
        except (
            OSError,
            OverflowError,
        ):  # it has died meanwhile, or the address means nothing: the kernel says so too
            pass
        except (
            LookupError,
            ValueError,
        ):  # whatever a program makes /proc say of it, its call is answered
            self._blind = True

    def settle(self) -> None:
        """The job is about to be ended. Who still executes what it always did has become no other program, and may not come to it any more."""
        for pid in list(self._pending):
            with contextlib.suppress(OSError):  # it has ended
                ours = _executes_ours(pid)
                if ours or (ours is None and not self._namespaces):
                    del self._pending[pid]

    def take(self, refused: Mapping[str, int]) -> dict[str, int]:
        """Counts by kind since the last call, zeros included; a kind that could not be counted here is absent. refused: calls by name."""
        counts, pending, blind = self._counts, sum(self._pending.values()), self._blind
        self._counts, self._pending, self._blind, self._linked = Counter(), Counter(), False, False
        calls = counts["call"] + sum(
            number for name, number in refused.items() if name not in HARMLESS and name != "socket"
        )
        tried = {"call": calls, "exec": counts["exec"] + pending, "socket": counts["socket"]}
        return tried if blind else tried | {"file": counts["file"]}

    def _exec(self, pid: int) -> None:
        """A search along PATH is many calls; each counts, unless the interpreter comes of them."""
        if _executes_ours(pid) is False:
            self._counts["exec"] += 1
        else:
            self._pending[pid] += 1

    def _connects(self, pid: int, arguments: list[int]) -> bool:
        """Whether this is a connection to a named socket of somebody else. Addresses of the network need a socket that is refused."""
        address = _memory(pid, arguments[1], min(arguments[2] & 0xFFFF, 110))
        if len(address) < 4 or struct.unpack_from("<H", address)[0] != UNIX or not address[2]:
            return False
        path = self._absolute(pid, None, os.fsdecode(address[2:].split(b"\0")[0]))
        return not path.startswith((*LIBC, *(f"{folder}/" for folder in self._own)))

    def _reaches(self, pid: int, call: int, arguments: list[int]) -> bool:
        """Whether a path of this call lies where the program has no business."""
        if call in OPENS:
            folder, at = OPENS[call]
            flags = arguments[at + 1]
            if call == OPEN_HOW:
                flags = int.from_bytes(_memory(pid, flags, 8), "little")
            path = self._path(pid, arguments, folder, at)
            if flags & (ACCESS | CREATE | TRUNCATE):
                return self._outside(pid, path)
            # to look for what is not there is no reach for it, unless it would be a secret
            return self._private(pid, path) and (
                bool(SECRET.match(path)) or os.path.lexists(f"/proc/{pid}/root{path}")
            )
        if call in LINKS:
            self._linked = True
            _, at = LINKS[call]
            folder, where = CHANGES[call][0]
            beside = os.path.dirname(self._path(pid, arguments, folder, where))
            target = os.path.join(beside, _text(pid, arguments[at]))
            if self._outside(pid, os.path.normpath(target)):
                return True
        if not arguments[PLACES[call][0][1]]:
            return False  # no path: what the descriptor stands for
        return any(self._outside(pid, self._path(pid, arguments, *place)) for place in PLACES[call])

    def _path(self, pid: int, arguments: list[int], folder: int | None, at: int) -> str:
        return self._absolute(
            pid,
            None if folder is None else arguments[folder] & 0xFFFFFFFF,
            _text(pid, arguments[at]),
        )

    def _absolute(self, pid: int, folder: int | None, path: str, steps: int = MOST_LINKS) -> str:
        """As the program's root has it. folder: the descriptor that it is relative to. steps: descriptors to follow, for one may name itself."""
        if not path.startswith("/"):
            here = "cwd" if folder in (None, AT_CWD) else f"fd/{folder}"
            path = f"{os.readlink(f'/proc/{pid}/{here}')}/{path}"
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
            return True  # another slot's, where there is no namespace
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
        """Whether this file is not there for everybody to read."""
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
    """Of a file of /proc: programs choose names in it, and those may hold any byte but the end of a line."""
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
    """A path in the memory of this process."""
    return os.fsdecode(_memory(pid, address, MOST_PATH).split(b"\0", 1)[0])


def _resolved(pid: int, path: str) -> str:
    """Where this path leads from the root of that process, links followed, by the kernel; the path itself where that cannot be said."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    try:
        for whole, last in ((path, ""), (os.path.dirname(path), f"/{os.path.basename(path)}")):
            how = struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, IN_ROOT)
            found = _libc.syscall(OPEN_HOW, root, os.fsencode(whole), how, len(how))
            if found >= 0:
                try:
                    return os.readlink(f"/proc/self/fd/{found}") + last
                finally:
                    os.close(found)
        return path
    finally:
        os.close(root)


def _is_libs(pid: int, arguments: list[int]) -> bool:
    """Whether a library asks for this socket of its own accord: one to libc's name services, or libuuid's, which looks up the card's address."""
    family, kind, protocol = (argument & 0xFFFFFFFF for argument in arguments[:3])
    if family == UNIX:
        return True
    if (family, kind, protocol) != (INTERNET, DATAGRAM, 0):
        return False
    try:
        told = Path(f"/proc/{pid}/syscall").read_text().split()
        if len(told) < 2:
            return False  # a signal came meanwhile
        caller = int.from_bytes(
            _memory(pid, int(told[-2], 16), 8), "little"
        )  # where libc's function will return to
        maps = lines(f"/proc/{pid}/maps")
    except PermissionError:
        return True  # nothing else opens a socket like this
    ranges = (LIBRARY.match(line) for line in maps)
    return any(int(found[1], 16) <= caller < int(found[2], 16) for found in ranges if found)


def _is(pid: int, number: str) -> bool:
    """Whether this process has that number, seen from inside its namespace."""
    own = (line for line in lines(f"/proc/{pid}/status") if line.startswith(("NSpid:", "NStgid:")))
    return any(line.split()[-1] == number for line in own)


def _executes_ours(pid: int) -> bool | None:
    """Whether this process is the interpreter, or `uname`. None where we may not ask."""
    try:
        found = os.stat(f"/proc/{pid}/exe")
    except PermissionError:
        return None
    return (found.st_dev, found.st_ino) in _OURS


def _identities() -> set[tuple[int, int]]:
    paths = [sys.executable, getattr(sys, "_base_executable", ""), shutil.which("uname") or ""]
    return {
        (found.st_dev, found.st_ino)
        for path in paths
        if os.path.exists(path)
        for found in [os.stat(path)]
    }


_OURS = _identities()
