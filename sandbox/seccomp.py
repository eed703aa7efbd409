"""The system calls that no program under judgement may make, as one BPF filter. x86-64 only.

Where the kernel can (Linux 5.5), a refused call is handed to a listener outside, which answers it and counts it (sandbox/denied.py).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

ALLOW, KILL, ERRNO, ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
LOAD, EQUAL, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data: low halves of the arguments
NEW_NAMESPACES = 0x7E020000
SECCOMP, SET_MODE_FILTER, NEW_LISTENER = 317, 1, 1 << 3
UNIX = 1
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

# by what they reach: other processes, namespaces and mounts, keys, the kernel itself, memory that outlives or escapes the accounts
DENIED = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438, "process_madvise": 440,
    "process_mrelease": 448,
    "unshare": 272, "setns": 308, "pivot_root": 155, "chroot": 161, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_by_handle_at": 304, "name_to_handle_at": 303,
    "add_key": 248, "request_key": 249, "keyctl": 250,
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 246,
    "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176, "swapon": 167, "swapoff": 168, "reboot": 169,
    "settimeofday": 164, "adjtimex": 159, "clock_settime": 227, "clock_adjtime": 305, "sethostname": 170, "setdomainname": 171, "quotactl": 179,
    "quotactl_fd": 443, "acct": 163, "syslog": 103, "personality": 135, "iopl": 172, "ioperm": 173, "modify_ldt": 154, "vhangup": 153, "uselib": 134,
    "fanotify_init": 300, "fanotify_mark": 301, "inotify_init": 253, "inotify_init1": 294, "seccomp": 317,
    "shmget": 29, "shmat": 30, "shmctl": 31, "shmdt": 67, "semget": 64, "semop": 65, "semctl": 66, "semtimedop": 220, "msgget": 68, "msgsnd": 69,
    "msgrcv": 70, "msgctl": 71, "mq_open": 240, "mq_unlink": 241, "memfd_secret": 447, "setpriority": 141, "ioprio_set": 251,
}  # fmt: skip
# what a program may do to itself, pid 0, and to no other process of its uid; the pid is the first argument
SELF_ONLY = {
    "prlimit64": 302, "sched_setaffinity": 203, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setattr": 314, "migrate_pages": 256,
    "move_pages": 279, "get_robust_list": 274,
}  # fmt: skip
CLONE, CLONE3, SOCKET, IOCTL, FCNTL = 56, 435, 41, 16, 72
# what the listener lets the zygote do and nobody else; without a listener the kernel's own checks stand
OF_THE_ZYGOTE = {"mount": 165, "umount2": 166}
# on a kernel that does not confine signals, for programs that share our uid: those that name a process by number are let through by the listener
# to processes of the same program; the others, and signals by way of a descriptor's owner, are refused
SIGNALS = {"kill": 62, "tkill": 200, "tgkill": 234}
OTHER_SIGNALS = {"rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424}
SET_OWNER, SET_OWNER_BY_IOCTL = (8, 15), (0x8901, 0x8902)  # F_SETOWN, F_SETOWN_EX; FIOSETOWN, SIOCSPGRP
PROBED = DENIED | SELF_ONLY | OF_THE_ZYGOTE | {"clone": CLONE, "socket": SOCKET, "ioctl": IOCTL}
NUMBERS = PROBED | SIGNALS | OTHER_SIGNALS | {"fcntl": FCNTL}
NAMES = {number: name for name, number in NUMBERS.items()}


def available() -> bool:
    return os.uname().machine == "x86_64"


def install(*, unix_sockets: bool, guard_signals: bool) -> int | None:
    """For this process and all its children, for good. Returns the listener's descriptor, or None where the kernel has none to give.

    unix_sockets: allowed where a network namespace makes them harmless. guard_signals: needs a listener.
    Needs no_new_privs or CAP_SYS_ADMIN. Raises OSError where the kernel refuses.
    """
    try:
        return _install(program(unix_sockets=unix_sockets, guard_signals=guard_signals, listener=True), NEW_LISTENER)
    except OSError:  # an old kernel, or somebody above us (a container's runtime) listens already
        if guard_signals:
            raise
    _install(program(unix_sockets=unix_sockets, guard_signals=False, listener=False), 0)
    return None


def probe() -> None:
    """Makes each call once that is refused to every program, by arguments that mean nothing, and ends: who listens learns what reaches it."""
    libc = ctypes.CDLL(None)
    try:
        for name in PROBED:
            first, second = {"clone": (1 << 28, 0), "ioctl": (0, TERMINAL_INPUT[0]), "socket": (2, 1)}.get(name, (-1, -1))
            libc.syscall(NUMBERS[name], ctypes.c_long(first), ctypes.c_long(second), *[ctypes.c_long(-1)] * 4)
    finally:
        os._exit(0)


def _install(code: bytes, flags: int) -> int:
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    made = int(libc.syscall(SECCOMP, SET_MODE_FILTER, flags, ctypes.create_string_buffer(filter_program, len(filter_program))))
    if made < 0:
        raise OSError(ctypes.get_errno(), "seccomp filter refused")
    return made


def program(*, unix_sockets: bool, guard_signals: bool, listener: bool) -> bytes:
    refuse, unknown = ASK if listener else ERRNO | errno.EPERM, ERRNO | errno.ENOSYS
    owner = [*TERMINAL_INPUT, *SET_OWNER_BY_IOCTL] if guard_signals else list(TERMINAL_INPUT)
    asked = [*DENIED.values(), *(OF_THE_ZYGOTE.values() if listener else ())]
    if guard_signals:
        asked += [*SIGNALS.values(), *OTHER_SIGNALS.values()]
    code = [
        (LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, 0xC000003E), (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, unknown),  # the x32 table reaches the same calls by other numbers
        (EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, unknown),  # its flags lie in memory, out of reach: libc falls back to clone
        (EQUAL, 0, 4, CLONE), (LOAD, 0, 0, FIRST), (AND, 0, 0, NEW_NAMESPACES), (EQUAL, 1, 0, 0), (RETURN, 0, 0, refuse), (LOAD, 0, 0, NUMBER),
        *_refuse_second(IOCTL, owner, refuse), *(_refuse_second(FCNTL, SET_OWNER, refuse) if guard_signals else ()),
    ]  # fmt: skip
    if unix_sockets:
        code += [(EQUAL, 0, 3, SOCKET), (LOAD, 0, 0, FIRST), (EQUAL, 1, 0, UNIX), (RETURN, 0, 0, refuse), (LOAD, 0, 0, NUMBER)]
    else:
        code += [(EQUAL, 0, 1, SOCKET), (RETURN, 0, 0, refuse)]
    for number in asked:
        code += [(EQUAL, 0, 1, number), (RETURN, 0, 0, refuse)]
    for number in SELF_ONLY.values():
        code += [(EQUAL, 0, 4, number), (LOAD, 0, 0, FIRST), (EQUAL, 1, 0, 0), (RETURN, 0, 0, refuse), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in [*code, (RETURN, 0, 0, ALLOW)])


def _refuse_second(call: int, values: Sequence[int], refuse: int) -> list[tuple[int, int, int, int]]:
    """Refuses a call whose second argument is one of these."""
    checks = [step for value in values for step in ((EQUAL, 0, 1, value), (RETURN, 0, 0, refuse))]
    return [(EQUAL, 0, len(checks) + 2, call), (LOAD, 0, 0, SECOND), *checks, (LOAD, 0, 0, NUMBER)]
