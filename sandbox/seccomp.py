"""The system calls that no program under judgement may make, as one BPF filter. x86-64 only."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, EQUAL, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data: low halves of the arguments
NEW_NAMESPACES = 0x7E020000
PR_SET_SECCOMP, MODE_FILTER = 22, 2
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
CLONE, CLONE3, SOCKET, IOCTL = 56, 435, 41, 16


def available() -> bool:
    return platform.machine() == "x86_64"


def install(*, unix_sockets: bool) -> None:
    """For this process and all its children, for good. unix_sockets: allowed where a network namespace makes them harmless.

    Needs no_new_privs or CAP_SYS_ADMIN. Raises OSError where the kernel refuses.
    """
    code = program(unix_sockets=unix_sockets)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.create_string_buffer(filter_program, len(filter_program)), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp filter refused")


def program(*, unix_sockets: bool) -> bytes:
    refuse, unknown = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS
    code = [
        (LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, 0xC000003E), (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, unknown),  # the x32 table reaches the same calls by other numbers
        (EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, unknown),  # its flags lie in memory, out of reach: libc falls back to clone
        (EQUAL, 0, 4, CLONE), (LOAD, 0, 0, FIRST), (AND, 0, 0, NEW_NAMESPACES), (EQUAL, 1, 0, 0), (RETURN, 0, 0, refuse), (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 4, IOCTL), (LOAD, 0, 0, SECOND), (EQUAL, 1, 0, TERMINAL_INPUT[0]), (EQUAL, 0, 1, TERMINAL_INPUT[1]), (RETURN, 0, 0, refuse),
        (LOAD, 0, 0, NUMBER),
    ]  # fmt: skip
    if unix_sockets:
        code += [(EQUAL, 0, 3, SOCKET), (LOAD, 0, 0, FIRST), (EQUAL, 1, 0, UNIX), (RETURN, 0, 0, refuse), (LOAD, 0, 0, NUMBER)]
    else:
        code += [(EQUAL, 0, 1, SOCKET), (RETURN, 0, 0, refuse)]
    for number in DENIED.values():
        code += [(EQUAL, 0, 1, number), (RETURN, 0, 0, refuse)]
    for number in SELF_ONLY.values():
        code += [(EQUAL, 0, 4, number), (LOAD, 0, 0, FIRST), (EQUAL, 1, 0, 0), (RETURN, 0, 0, refuse), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in [*code, (RETURN, 0, 0, ALLOW)])
