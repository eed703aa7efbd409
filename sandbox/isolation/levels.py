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
from sandbox.isolation.process_tree import descendants_ended

LEVELS = ("root", "userns", "bare")
# First message to a zygote: whether a cgroup counts what it and its programs use.
COUNTED, UNCOUNTED = b"c", b"u"
# plus the signal number: exit status of the outer process when the inner one was killed
SIGNALLED = 128
SCRATCH_MB = 64
SCRATCH_NAMES = 4096  # files and folders
FILE_BYTES = SCRATCH_MB * 2**20

_libc = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x20000,
    0x2000000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
_DETACH = 2
_PDEATHSIG, _DUMPABLE, _CAPBSET_DROP, _CHILD_SUBREAPER, _NO_NEW_PRIVS = 1, 4, 24, 36, 38
_CAP_KILL, _CAP_SETGID, _CAP_SETUID, _CAP_SYS_ADMIN, _CAP_SYS_RESOURCE, _LAST_CAP = (
    5,
    6,
    7,
    21,
    24,
    40,
)
_DEVICES = ("null", "zero", "full", "random", "urandom")


def _call(name: str, *args: object) -> None:
    if getattr(_libc, name)(*args) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


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
    _call("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def become_subreaper() -> None:
    _call("prctl", _CHILD_SUBREAPER, 1, 0, 0, 0)


def enter(
    level: str,
    packages: dict[str, str],
    *,
    counted: bool,
    watched: Sequence[int] = (),
    shows_machine: bool = False,
) -> tuple[str, int | None]:
    """Confine this process. With namespaces this returns in a child, which is pid 1; the parent
    stays, and ends when the child does.

    packages: name -> folder, or single file, of each third-party package that programs may import.
    counted: whether a cgroup counts usage.
    watched: calls that the listener is told about.
    shows_machine: with namespaces, programs see more of a machine (sandbox/isolation/machine.py).
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
    _build_root(packages, shows_machine)
    _set_constant_rlimits()
    _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
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
        _call("prctl", _PDEATHSIG, 0, 0, 0, 0)
        _outlive(pid, kill_the_rest=True)
    die_with_parent(outer)
    become_subreaper()
    _set_constant_rlimits()
    _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
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
        _call("prctl", _DUMPABLE, int(seen), 0, 0, 0)
    if rules is not None:
        landlock.confine(rules)


def mount_scratch(path: str, executable: bool) -> None:
    flags = _NOSUID | _NODEV | (0 if executable else _NOEXEC)
    _mount_tmpfs(path, flags, f"size={SCRATCH_MB}m,nr_inodes={SCRATCH_NAMES},mode=1777")


def unmount(path: str) -> None:
    _call("umount2", path.encode(), _DETACH)


def _unshare(level: str) -> None:
    spaces = _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP
    if level == "root":
        _call("unshare", spaces)
        return
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", spaces | _NEWUSER)
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


def _visible() -> list[str]:
    """Return what a program may read of this machine: the interpreter, its libraries, the shell's
    tools.
    """
    interpreter = [sys.base_prefix] if sys.base_prefix != "/usr" else []
    # Python of a container image: nothing else under /usr/local is shown
    if sys.base_prefix == "/usr/local":
        interpreter = ["/usr/local/bin", "/usr/local/lib"]
    system = [
        "/usr/bin",
        "/usr/lib",
        "/usr/lib64",
        "/usr/share/zoneinfo",
        "/bin",
        "/lib",
        "/lib64",
        "/etc/ld.so.cache",
        "/etc/localtime",
    ]
    return [path for path in [*system, *interpreter] if os.path.lexists(path)]


def _build_root(packages: dict[str, str], shows_machine: bool) -> None:
    """Build a read-only root from a few bind mounts. Only /scratch is writable; /tmp and similar
    paths link to it.
    """
    _call("mount", None, b"/", None, _REC | _PRIVATE, None)
    root = "/proc"  # exists everywhere, and no path to be shown is below it
    _mount_tmpfs(root, _NOSUID, "mode=755,size=1m")
    for path in _visible():
        if os.path.islink(path) and path.count("/") == 1:
            os.symlink(os.readlink(path), root + path)
        else:
            _bind(path, root + path)
    for hidden in (
        f"{sys.base_prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages",
        "/usr/lib/python3/dist-packages",
    ):
        if os.path.isdir(root + hidden):
            _hide(root + hidden)
    for path in packages.values():
        _bind(path, f"{root}/packages/{os.path.basename(path)}")
    for device in _DEVICES:
        _bind(f"/dev/{device}", f"{root}/dev/{device}", flags=_NOSUID | _NOEXEC)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{root}/dev/{name}")
    for folder in ("proc", "scratch", "var"):
        os.makedirs(f"{root}/{folder}", exist_ok=True)
    for link in ("/tmp", "/var/tmp", "/dev/shm"):
        if not os.path.lexists(root + link):
            os.symlink("/scratch", root + link)
    _mount_proc(f"{root}/proc", shows_machine)
    if shows_machine:
        with open(f"{root}/etc/hosts", "w") as file:
            file.write(machine.HOSTS)
    os.chdir(root)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", _DETACH)
    os.chdir("/")
    _call("mount", None, b"/", None, _REMOUNT | _RDONLY | _NOSUID | _BIND, None)
    mount_scratch("/scratch", shows_machine)
    _call("sethostname", b"sandbox", 7)


def _bind(source: str, target: str, flags: int = _RDONLY | _NOSUID | _NODEV) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _call("mount", source.encode(), target.encode(), None, _BIND, None)
    _call("mount", None, target.encode(), None, _BIND | _REMOUNT | flags, None)


def _hide(path: str) -> None:
    if os.path.isdir(path):
        _mount_tmpfs(path, _RDONLY | _NOSUID | _NODEV, "size=4k")
    else:
        _call("mount", b"/dev/null", path.encode(), None, _BIND, None)


def _mount_tmpfs(path: str, flags: int, options: str) -> None:
    _call("mount", b"tmpfs", path.encode(), b"tmpfs", flags, options.encode())


def _mount_proc(target: str, shows_machine: bool) -> None:
    """Mount a /proc with only the own processes, and few of the kernel's files or none. Skipped if
    the machine forbids it (a container that masks /proc); Python works without it.
    """
    few, more = b"hidepid=invisible,subset=pid", b"hidepid=2"
    for options in (more, few) if shows_machine else (few, more):
        try:
            _call("mount", b"proc", target.encode(), b"proc", _NOSUID | _NODEV | _NOEXEC, options)
        except OSError:
            continue
        if options == more:
            for path in machine.hidden(target):
                _hide(path)
        return


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
        readable=[*_visible(), *packages], devices=[f"/dev/{d}" for d in _DEVICES], writable=scratch
    )


def _keep_capabilities(kept: set[int]) -> None:
    """Reduce the effective and permitted capabilities to those of `kept` that we have; drop all
    others from the bounding set, if permitted.
    """
    header = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
    data = ctypes.create_string_buffer(24)
    _call("capget", header, data)
    fields = list(struct.unpack("<6I", data.raw[:24]))
    allowed = sum(1 << cap for cap in kept)
    for i in range(2):
        mask = (allowed >> (32 * i)) & 0xFFFFFFFF
        fields[3 * i : 3 * i + 3] = [fields[3 * i + 1] & mask, fields[3 * i + 1] & mask, 0]
    if kept:
        for cap in set(range(_LAST_CAP + 1)) - kept:
            _libc.prctl(_CAPBSET_DROP, cap, 0, 0, 0)
    _call("capset", header, ctypes.create_string_buffer(struct.pack("<6I", *fields), 24))
