"""The isolation levels: what a zygote does to itself before it runs any program.

root
    Namespaces (mount, pid, network, ipc, uts, cgroup) made by real root. Programs have a uid of
    their own.
userns
    The same inside a user namespace, for users without privileges. Programs share the zygote's uid
    but have no capabilities.
bare
    No namespaces (a container that forbids them): Landlock, and a uid of their own if we are root
    and users other than root can read the interpreter. Without such a uid, and if Landlock does not
    confine signals (before Linux 6.12), the listener checks each signal (syscall_monitor.py).

Every level has no_new_privs, the seccomp filter and rlimits. If the kernel refuses a step of a
level, that raises OSError: no step is skipped silently.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from os import setresgid, setresuid  # plain names, see `_become` in the zygote
from typing import NoReturn

from sandbox.isolation import landlock, machine, seccomp
from sandbox.isolation.file_tree import DEVICES, FILE_BYTES, build_root, visible
from sandbox.isolation.libc import call, libc
from sandbox.isolation.process_tree import descendants_ended

LEVELS = ("root", "userns", "bare")
# First message to a zygote: whether a cgroup counts what it and its programs use.
COUNTED, UNCOUNTED = b"c", b"u"
# plus the signal number: exit status of the outer process when the inner one was killed
SIGNALLED = 128

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x20000,
    0x2000000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_PDEATHSIG, _DUMPABLE, _CAPBSET_DROP, _CHILD_SUBREAPER, _NO_NEW_PRIVS = 1, 4, 24, 36, 38
_CAP_KILL, _CAP_SETGID, _CAP_SETUID, _CAP_SYS_ADMIN, _CAP_SYS_RESOURCE, _LAST_CAP = (
    5,
    6,
    7,
    21,
    24,
    40,
)


_pid_counter: int | None = None


def _keep_pid_counter() -> None:
    """Open the file that `restart_pids` writes, before the new root hides it. A write acts on the
    writer's pid namespace.
    """
    global _pid_counter
    with contextlib.suppress(OSError):  # missing in a kernel without checkpoint support
        _pid_counter = os.open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY)


def restart_pids() -> None:
    """Make the next process of a zygote's pid namespace get the lowest free pid, so that pids say
    nothing about earlier jobs.
    """
    if _pid_counter is not None:
        # Not permitted everywhere; docs/explanation/sandbox.md says where pids show other jobs.
        with contextlib.suppress(OSError):
            os.pwrite(_pid_counter, b"1", 0)


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent dies. `parent` is the expected parent, in
    case it has died already.
    """
    call("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def become_subreaper() -> None:
    call("prctl", _CHILD_SUBREAPER, 1, 0, 0, 0)


def enter(
    level: str,
    packages: dict[str, str],
    *,
    counted: bool,
    watched: Sequence[int] = (),
    shows_machine: bool = False,
    shown: Sequence[str] = (),
) -> tuple[str, int | None]:
    """Confine this process. With namespaces this returns in a child, which is pid 1; the parent
    stays, and ends when the child does.

    packages: name -> folder, or single file, of each third-party package that programs may import.
    counted: whether a cgroup counts usage.
    watched: calls that the listener is told about.
    shows_machine: with namespaces, programs see more of a machine (sandbox/isolation/machine.py).
    shown: further files and folders that programs may read.
    Returns the measures in force, in words, and the listener's descriptor for refused calls, if the
    kernel provides one.
    """
    if level == "root" and os.geteuid() != 0:
        raise PermissionError("the level root needs uid 0")
    if has_own_uid(level):
        os.setgroups([])
    if level == "bare":
        return _enter_bare(tuple(watched), counted=counted)
    _keep_pid_counter()
    uid = os.geteuid()
    _unshare(level)
    if pid := os.fork():
        _outlive(pid)
    die_with_parent(0)  # the parent is outside the new pid namespace, so its pid shows as 0 here
    sockets = shows_machine and machine.start_loopback()
    build_root(packages, shows_machine, shown)
    _set_constant_rlimits()
    call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
    _keep_capabilities({_CAP_KILL, _CAP_SETGID, _CAP_SETUID, _CAP_SYS_ADMIN, _CAP_SYS_RESOURCE})
    measures = ["namespaces", "uid" if level == "root" else "no capabilities"]
    listener = None
    if seccomp.available():
        # RLIMIT_NPROC does not apply to root
        mapped_root = level == "userns" and not counted and uid == 0
        listener = seccomp.install(
            seccomp.Guards(
                unix_sockets=True,
                sockets=sockets,
                uncounted=not counted,
                forks=mapped_root,
                watched=tuple(watched),
            )
        )
        measures.append("seccomp")
    return "+".join([*measures, "rlimits"]), listener


def _enter_bare(watched: tuple[int, ...], *, counted: bool) -> tuple[str, int | None]:
    """Confine this process on level bare. Raises OSError if nothing would protect our files or
    processes from a program.
    """
    if not landlock.available():
        raise OSError(
            errno.ENOSYS,
            "the kernel has no Landlock (Linux 5.13, and `landlock` among its security "
            "modules): files would be unprotected",
        )
    if not seccomp.available():
        raise OSError(
            errno.ENOSYS, "no seccomp filter for this processor: the network would be open"
        )
    become_subreaper()
    outer = os.getpid()
    if pid := os.fork():
        # The zygote ends with its owner; this process then kills what it leaves.
        call("prctl", _PDEATHSIG, 0, 0, 0, 0)
        _outlive(pid, kill_the_rest=True)
    die_with_parent(outer)
    become_subreaper()
    _set_constant_rlimits()
    call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
    own = has_own_uid("bare")
    listener = seccomp.install(
        seccomp.Guards(
            signals=not own and not landlock.confines_signals(),
            attributes=not own,
            leftovers=True,
            uncounted=not counted,
            forks=not own and not counted,
            watched=watched,
        )
    )
    return "+".join(
        ["uid" if own else "no capabilities", "landlock", "seccomp", "rlimits"]
    ), listener


def has_own_uid(level: str) -> bool:
    """Whether programs run under a uid of their own."""
    if level != "bare":
        return level == "root"
    parts = sys.base_prefix.split("/")
    folders = ["/".join(parts[:end]) or "/" for end in range(1, len(parts) + 1)]
    return os.geteuid() == 0 and all(os.stat(folder).st_mode & 0o001 for folder in folders)


def drop(uid: int | None, rules: int | None, seen: bool) -> None:
    """Give up all privileges of this process for good; it is about to run a program.

    uid: a uid of its own, or None to keep ours.
    seen: the worker reads its usage from /proc. Otherwise no process of the same uid may open its
        memory or descriptors. Other programs cannot in either case: they have another uid, another
        pid namespace, or Landlock, under which a process can trace only its own descendants.
    """
    if uid is not None:
        setresgid(uid, uid, uid)
        setresuid(uid, uid, uid)
    else:
        _keep_capabilities(set())
    if seen or uid is None:
        call("prctl", _DUMPABLE, int(seen), 0, 0, 0)
    if rules is not None:
        landlock.confine(rules)


def _unshare(level: str) -> None:
    spaces = _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP
    if level == "root":
        call("unshare", spaces)
        return
    uid, gid = os.geteuid(), os.getegid()
    call("unshare", spaces | _NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _outlive(pid: int, *, kill_the_rest: bool = False) -> NoReturn:
    """Main loop of the outer process: it holds no descriptors of the inner process, ends with it,
    and takes it along by PDEATHSIG.
    """
    os.closerange(0, 256)
    while (ended := os.waitpid(-1, 0))[0] != pid:
        pass
    while kill_the_rest and not descendants_ended():
        pass
    code = os.waitstatus_to_exitcode(ended[1])
    os._exit(code if code >= 0 else SIGNALLED - code)


def _set_constant_rlimits() -> None:
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_SIGPENDING, 256),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_STACK, 64 * 2**20),
    ):
        hard = resource.getrlimit(what)[1]
        top = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(
            what, (min(top, 8 * 2**20) if what == resource.RLIMIT_STACK else top, top)
        )


def file_rules(packages: list[str], scratch: str) -> int:
    """Return the Landlock rules for programs on level bare; each program applies them to itself."""
    return landlock.ruleset(
        readable=[*visible(), *packages], devices=[f"/dev/{d}" for d in DEVICES], writable=scratch
    )


def _keep_capabilities(kept: set[int]) -> None:
    """Reduce the effective and permitted capabilities to those of `kept` that we have; drop all
    others from the bounding set, if permitted.
    """
    header = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
    data = ctypes.create_string_buffer(24)
    call("capget", header, data)
    fields = list(struct.unpack("<6I", data.raw[:24]))
    allowed = sum(1 << cap for cap in kept)
    for i in range(2):
        mask = (allowed >> (32 * i)) & 0xFFFFFFFF
        fields[3 * i : 3 * i + 3] = [fields[3 * i + 1] & mask, fields[3 * i + 1] & mask, 0]
    if kept:
        for cap in set(range(_LAST_CAP + 1)) - kept:
            libc.prctl(_CAPBSET_DROP, cap, 0, 0, 0)
    call("capset", header, ctypes.create_string_buffer(struct.pack("<6I", *fields), 24))
