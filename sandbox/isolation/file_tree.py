"""The files that programs see on levels with a mount namespace: a read-only root of bind mounts,
and a scratch folder in memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from sandbox.isolation import machine
from sandbox.isolation.libc import call

SCRATCH_MB = 64
SCRATCH_NAMES = 4096  # files and folders
FILE_BYTES = SCRATCH_MB * 2**20
DEVICES = ("null", "zero", "full", "random", "urandom")

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


def mount_scratch(path: str, executable: bool) -> None:
    flags = _NOSUID | _NODEV | (0 if executable else _NOEXEC)
    _mount_tmpfs(path, flags, f"size={SCRATCH_MB}m,nr_inodes={SCRATCH_NAMES},mode=1777")


def unmount(path: str) -> None:
    call("umount2", path.encode(), _DETACH)


def visible() -> list[str]:
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


def build_root(packages: dict[str, str], shows_machine: bool, shown: Sequence[str]) -> None:
    """Build a read-only root from a few bind mounts. Only /scratch is writable; /tmp and similar
    paths link to it.
    """
    call("mount", None, b"/", None, _REC | _PRIVATE, None)
    root = "/proc"  # exists everywhere, and no path to be shown is below it
    _mount_tmpfs(root, _NOSUID, "mode=755,size=1m")
    for path in [*visible(), *shown]:
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
    for device in DEVICES:
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
    call("pivot_root", b".", b".")
    call("umount2", b".", _DETACH)
    os.chdir("/")
    call("mount", None, b"/", None, _REMOUNT | _RDONLY | _NOSUID | _BIND, None)
    mount_scratch("/scratch", shows_machine)
    call("sethostname", b"sandbox", 7)


def _bind(source: str, target: str, flags: int = _RDONLY | _NOSUID | _NODEV) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    call("mount", source.encode(), target.encode(), None, _BIND, None)
    call("mount", None, target.encode(), None, _BIND | _REMOUNT | flags, None)


def _hide(path: str) -> None:
    if os.path.isdir(path):
        _mount_tmpfs(path, _RDONLY | _NOSUID | _NODEV, "size=4k")
    else:
        call("mount", b"/dev/null", path.encode(), None, _BIND, None)


def _mount_tmpfs(path: str, flags: int, options: str) -> None:
    call("mount", b"tmpfs", path.encode(), b"tmpfs", flags, options.encode())


def _mount_proc(target: str, shows_machine: bool) -> None:
    """Mount a /proc with only the own processes, and few of the kernel's files or none. Skipped if
    the machine forbids it (a container that masks /proc); Python works without it.
    """
    few, more = b"hidepid=invisible,subset=pid", b"hidepid=2"
    for options in (more, few) if shows_machine else (few, more):
        try:
            call("mount", b"proc", target.encode(), b"proc", _NOSUID | _NODEV | _NOEXEC, options)
        except OSError:
            continue
        if options == more:
            for path in machine.hidden(target):
                _hide(path)
        return
