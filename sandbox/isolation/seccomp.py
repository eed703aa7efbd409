"""The system calls that no judged program may make, as one BPF filter. x86-64 only.

If the kernel supports it (Linux 5.5), a refused call is passed to a listener outside, which answers
and counts it (sandbox/worker/syscall_monitor.py).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

ALLOW, KILL, ERRNO, ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
LOAD, EQUAL, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
# Offsets in struct seccomp_data; for arguments, of their low half.
NUMBER, ARCHITECTURE, FIRST, SECOND, THIRD, FOURTH, SIXTH = 0, 4, 16, 24, 32, 40, 56
NEW_NAMESPACES = 0x7E020000
SECCOMP, SET_MODE_FILTER, NEW_LISTENER, SET_SECCOMP, MODE_FILTER = 317, 1, 1 << 3, 22, 2
UNIX, INTERNET, INTERNET_6 = 1, 2, 10
STREAM, DATAGRAM, TCP, UDP = 1, 2, 6, 17
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

# Grouped by what they reach: other processes; namespaces and mounts; keys; the kernel itself;
# memory that outlives or escapes accounting; and what the page cache holds, which one job could
# learn about another (io_submit belongs here: its requests can be told not to wait for a disk).
DENIED = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "pidfd_getfd": 438, "process_madvise": 440,
    "process_mrelease": 448,
    "unshare": 272, "setns": 308, "pivot_root": 155, "chroot": 161, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_by_handle_at": 304,
    "name_to_handle_at": 303,
    "add_key": 248, "request_key": 249, "keyctl": 250,
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 246,
    "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "swapon": 167, "swapoff": 168, "reboot": 169,
    "settimeofday": 164, "adjtimex": 159, "clock_settime": 227, "clock_adjtime": 305,
    "sethostname": 170, "setdomainname": 171, "quotactl": 179,
    "quotactl_fd": 443, "acct": 163, "syslog": 103, "personality": 135, "iopl": 172, "ioperm": 173,
    "modify_ldt": 154, "vhangup": 153, "uselib": 134,
    "fanotify_init": 300, "fanotify_mark": 301, "inotify_init": 253, "inotify_init1": 294,
    "seccomp": 317,
    "shmget": 29, "shmat": 30, "shmctl": 31, "shmdt": 67, "semget": 64, "semop": 65, "semctl": 66,
    "semtimedop": 220, "msgget": 68, "msgsnd": 69,
    "msgrcv": 70, "msgctl": 71, "mq_open": 240, "mq_unlink": 241, "memfd_secret": 447,
    "vmsplice": 278,
    "mincore": 27, "cachestat": 451, "io_setup": 206, "io_submit": 209, "move_pages": 279,
    "setpriority": 141, "ioprio_set": 251,
}  # fmt: skip
# Calls that a program may make about itself (pid 0) but not about another process of its uid. The
# pid is the first argument.
SELF_ONLY = {
    "prlimit64": 302, "sched_setaffinity": 203, "sched_setparam": 142, "sched_setscheduler": 144,
    "sched_setattr": 314, "migrate_pages": 256,
    "get_robust_list": 274,
}  # fmt: skip
# From a socket or a terminal without data, these wait while they hold the lock of the pipe that
# they write to: the worker that reads the pipe would wait with them, out of reach of its clock and
# of SIGKILL. Answered as unknown, so that shutil.copyfile, which tries sendfile, falls back.
LOCKING = {"splice": 275, "sendfile": 40}
CLONE, CLONE3, SOCKET, IOCTL, FCNTL, MMAP, PRCTL, SIGACTION = 56, 435, 41, 16, 72, 9, 157, 13
OPEN, OPENAT, OPENAT2 = 2, 257, 437
# With flags other than these a read would reveal whether the page cache holds the data.
# RWF_HIPRI, RWF_DSYNC, RWF_SYNC, RWF_APPEND
AT_OFFSETS, PLAIN_FLAGS = {"preadv2": 327, "pwritev2": 328}, 0x17
# The listener lets only the zygote make these calls; without a listener the kernel's own checks
# apply.
OF_THE_ZYGOTE = {"mount": 165, "umount2": 166}
# For kernels that do not confine signals, and programs that share our uid. The listener allows
# those that name a process by number, for processes of the same program. The others, and signals
# through a descriptor's owner, are refused.
SIGNALS = {"kill": 62, "tkill": 200, "tgkill": 234}
OTHER_SIGNALS = {"rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424}
# F_SETOWN, F_SETOWN_EX; FIOSETOWN, SIOCSPGRP
SET_OWNER, SET_OWNER_BY_IOCTL = (8, 15), (0x8901, 0x8902)
# F_SETLEASE, F_NOTIFY, F_SET_RW_HINT, F_SET_FILE_RW_HINT: they also work on files of a read-only
# mount.
SET_LEASE_OR_HINT = (1024, 1026, 1036, 1038)
# For programs that have the uid of files that are not theirs: what the owner may do to a file by
# its path. Nothing else checks these paths.
ATTRIBUTES = {
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93,
    "lchown": 94, "fchownat": 260,
    "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280, "truncate": 76,
    "file_setattr": 469,
}  # fmt: skip
# FS_IOC_SETFLAGS, its 32-bit form, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION
SET_FLAGS = (0x40086602, 0x40046602, 0x401C5820, 0x40087602)
# For a scratch folder that is reused: extended attributes, which would be left on it.
LEFTOVERS = {
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
    "fremovexattr": 199, "setxattrat": 463,
    "removexattrat": 466,
}  # fmt: skip
# For levels where files are counted by the processes that have them open: messages could carry a
# file that no process has open.
MESSAGES = {"sendmsg": 46, "sendmmsg": 307}
# For levels without a cgroup: memory that no process needs to map. New processes and shared memory
# are allowed up to the limits.
MEMFD = 319
FORKS = {"fork": 57, "vfork": 58, "clone": CLONE}
SHARED, SET_DUMPABLE, SIGCHLD = 1, 4, 17
PROBED = DENIED | SELF_ONLY | OF_THE_ZYGOTE | {"clone": CLONE, "socket": SOCKET, "ioctl": IOCTL}
NUMBERS = PROBED | SIGNALS | OTHER_SIGNALS | AT_OFFSETS | ATTRIBUTES | LEFTOVERS | FORKS | {
    "fcntl": FCNTL, "open": OPEN, "openat": OPENAT, "memfd_create": MEMFD, "mmap": MMAP,
    "prctl": PRCTL,
}  # fmt: skip
NAMES = {number: name for name, number in NUMBERS.items()}


class Guards(NamedTuple):
    """What is refused in addition, depending on what else confines the programs."""

    unix_sockets: bool = False  # allowed: a network namespace makes them harmless
    sockets: bool = False  # TCP and UDP are allowed too, in a namespace with a loopback alone
    # If nothing else confines signals. Like `attributes` and `forks`, this needs a listener, which
    # lets the zygote through.
    signals: bool = False
    attributes: bool = False  # if programs have the uid of other files
    leftovers: bool = False  # if programs reuse the same folder one after another
    uncounted: bool = False  # if no cgroup counts what they use
    forks: bool = False  # if, in addition, RLIMIT_NPROC does not apply
    # numbers of calls that the listener, if there is one, is told about
    watched: tuple[int, ...] = ()


def available() -> bool:
    return os.uname().machine == "x86_64"


def install(guards: Guards) -> int | None:
    """Install the filter for this process and all its children, permanently. Returns the listener's
    descriptor, or None if the kernel has none.

    Needs no_new_privs or CAP_SYS_ADMIN. Raises OSError if the kernel refuses.
    """
    try:
        return _install(program(guards, listener=True), NEW_LISTENER)
    # an old kernel, or a process above (a container runtime) already has a listener
    except OSError:
        if guards.signals or guards.attributes or guards.forks:
            raise
    _install(program(guards, listener=False), 0)
    return None


def refuse_messages() -> None:
    """Refuse messages from now on, by a second filter: a message was needed to hand over the
    listener of the first. Refusals are not counted.
    """
    code = [
        (LOAD, 0, 0, NUMBER),
        *((EQUAL, 2 - at, 0, number) for at, number in enumerate(MESSAGES.values())),
        (RETURN, 0, 0, ALLOW),
    ]
    _install(_packed([*code, (RETURN, 0, 0, ERRNO | errno.EPERM)]), None)


def probe() -> None:
    """Make each call that every program is refused once, with meaningless arguments, and exit. The
    listener thereby learns which calls reach it.
    """
    libc = ctypes.CDLL(None)
    try:
        for name in PROBED:
            first, second = {
                "clone": (1 << 28, 0),
                "ioctl": (0, TERMINAL_INPUT[0]),
                "socket": (2, 1),
            }.get(name, (-1, -1))
            libc.syscall(
                NUMBERS[name], ctypes.c_long(first), ctypes.c_long(second), *[ctypes.c_long(-1)] * 4
            )
    finally:
        os._exit(0)


def _install(code: bytes, flags: int | None) -> int:
    """Install a filter. flags: None for the older call, which our own filter does not refuse and
    which provides no listener.
    """
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    program = ctypes.create_string_buffer(filter_program, len(filter_program))
    result = int(
        libc.prctl(SET_SECCOMP, MODE_FILTER, program)
        if flags is None
        else libc.syscall(SECCOMP, SET_MODE_FILTER, flags, program)
    )
    if result < 0:
        raise OSError(ctypes.get_errno(), "seccomp filter refused")
    return result


def program(guards: Guards, *, listener: bool) -> bytes:
    refuse, unknown = ASK if listener else ERRNO | errno.EPERM, ERRNO | errno.ENOSYS
    ioctls = [
        *TERMINAL_INPUT,
        *(SET_OWNER_BY_IOCTL if guards.signals else ()),
        *(SET_FLAGS if guards.attributes else ()),
    ]
    fcntls = [*SET_LEASE_OR_HINT, *(SET_OWNER if guards.signals else ())]
    listened = [*DENIED.values(), *(OF_THE_ZYGOTE.values() if listener else ())]
    listened += [*(SIGNALS | OTHER_SIGNALS).values()] if guards.signals else []
    listened += [*ATTRIBUTES.values()] if guards.attributes else []
    listened += [*LEFTOVERS.values()] if guards.leftovers else []
    # the zygote needs one itself; only a listener can let it through
    listened += [MEMFD] if guards.uncounted and listener else []
    listened += [*FORKS.values()] if guards.forks and listener else []
    code = [
        (LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, 0xC000003E), (RETURN, 0, 0, KILL),
        # the x32 table has other numbers for the same calls
        (LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, unknown),
        # its flags lie in memory, out of reach; libc falls back to clone
        (EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, unknown),
        (EQUAL, 1, 0, LOCKING["splice"]), (EQUAL, 0, 1, LOCKING["sendfile"]),
        (RETURN, 0, 0, unknown),
        *_where(CLONE, FIRST, NEW_NAMESPACES, refuse),
        *_refuse_second(IOCTL, ioctls, refuse), *_refuse_second(FCNTL, fcntls, refuse),
    ]  # fmt: skip
    if guards.attributes:
        code += [
            (EQUAL, 0, 1, OPENAT2),
            (RETURN, 0, 0, refuse if OPENAT2 in guards.watched else unknown),
            *_emptying(OPEN, SECOND, refuse),
            *_emptying(OPENAT, THIRD, refuse),
        ]
    for number in AT_OFFSETS.values():
        code += _where(number, SIXTH, 0xFFFFFFFF & ~PLAIN_FLAGS, refuse)
    if guards.uncounted:
        code += _uncounted(refuse, listener=listener)
    code += _sockets(guards, refuse)
    for number in (*listened, *(guards.watched if listener else ())):
        code += [(EQUAL, 0, 1, number), (RETURN, 0, 0, refuse)]
    for number in SELF_ONLY.values():
        code += [
            (EQUAL, 0, 4, number),
            (LOAD, 0, 0, FIRST),
            (EQUAL, 1, 0, 0),
            (RETURN, 0, 0, refuse),
            (RETURN, 0, 0, ALLOW),
        ]
    return _packed([*code, (RETURN, 0, 0, ALLOW)])


def _packed(code: list[tuple[int, int, int, int]]) -> bytes:
    return b"".join(struct.pack("HBBI", *step) for step in code)


def _uncounted(refuse: int, *, listener: bool) -> list[tuple[int, int, int, int]]:
    """Return the rules for levels without a cgroup.

    Shared memory is passed to the listener with its size. A process cannot hide its usage in /proc.
    A program cannot change what SIGCHLD does (the call succeeds and does nothing), so that every
    child is waited for and counted.
    """
    return [
        *(_where(MMAP, FOURTH, SHARED, refuse) if listener else ()),
        (EQUAL, 0, 6, PRCTL), (LOAD, 0, 0, FIRST), (EQUAL, 0, 3, SET_DUMPABLE),
        (LOAD, 0, 0, SECOND), (EQUAL, 1, 0, 1), (RETURN, 0, 0, refuse),
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 8, SIGACTION), (LOAD, 0, 0, FIRST), (EQUAL, 0, 5, SIGCHLD), (LOAD, 0, 0, SECOND),
        (EQUAL, 0, 2, 0), (LOAD, 0, 0, SECOND + 4),
        # a query names no new action
        (EQUAL, 1, 0, 0), (RETURN, 0, 0, ERRNO), (LOAD, 0, 0, NUMBER),
    ]  # fmt: skip


def _sockets(guards: Guards, refuse: int) -> list[tuple[int, int, int, int]]:
    """Refuse sockets, except those that are allowed."""
    steps = [(RETURN, 0, 0, refuse), (LOAD, 0, 0, NUMBER)]
    if guards.sockets:
        steps = [
            (EQUAL, 1, 0, INTERNET), (EQUAL, 0, 8, INTERNET_6),
            (LOAD, 0, 0, SECOND), (AND, 0, 0, 0xF), (EQUAL, 1, 0, STREAM), (EQUAL, 0, 4, DATAGRAM),
            (LOAD, 0, 0, THIRD), (EQUAL, 3, 0, 0), (EQUAL, 2, 0, TCP), (EQUAL, 1, 0, UDP),
            *steps,
        ]  # fmt: skip
    if guards.unix_sockets:
        steps = [(EQUAL, len(steps) - 1, 0, UNIX), *steps]
    return [(EQUAL, 0, len(steps) + 1, SOCKET), (LOAD, 0, 0, FIRST), *steps]


def _where(call: int, argument: int, bits: int, refuse: int) -> list[tuple[int, int, int, int]]:
    """Refuse a call if any of these bits is set in this argument."""
    return [
        (EQUAL, 0, 5, call),
        (LOAD, 0, 0, argument),
        (AND, 0, 0, bits),
        (EQUAL, 1, 0, 0),
        (RETURN, 0, 0, refuse),
        (LOAD, 0, 0, NUMBER),
    ]


def _emptying(call: int, argument: int, refuse: int) -> list[tuple[int, int, int, int]]:
    """Refuse to open a file for reading with truncation, which Landlock does not check before Linux
    6.2.
    """
    checks = [
        (LOAD, 0, 0, argument),
        (AND, 0, 0, 0o1003),
        (EQUAL, 0, 1, 0o1000),
        (RETURN, 0, 0, refuse),
        (LOAD, 0, 0, NUMBER),
    ]
    return [(EQUAL, 0, len(checks), call), *checks]


def _refuse_second(
    call: int, values: Sequence[int], refuse: int
) -> list[tuple[int, int, int, int]]:
    """Refuse a call whose second argument is one of these values."""
    checks = [step for value in values for step in ((EQUAL, 0, 1, value), (RETURN, 0, 0, refuse))]
    return [(EQUAL, 0, len(checks) + 2, call), (LOAD, 0, 0, SECOND), *checks, (LOAD, 0, 0, NUMBER)]
