"""Builds an image of the running interpreter without a registry: a tar of files of this machine,
for a container engine to import.

It contains Python without its tests, the packages that programs may import, the shared libraries
that these need, a shell with a few tools, and the sources of the sandbox package. It contains
nothing private of the machine: no users, keys or configuration.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

SOURCES = "/opt/ratchet/sandbox"  # folder of the sandbox's sources in the image
TOOLS = ("sh", "cat", "echo", "env", "false", "head", "ls", "sleep", "sort", "true", "wc")
_LEFT_OUT = {
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "ensurepip",
    "turtledemo",
    "lib2to3",
}
# Where the container mounts a tmpfs. The tmpfs takes the mode of this folder in the image.
SCRATCH = "/scratch"
_FOLDERS = (SCRATCH, "/dev", "/proc", "/sys", "/etc")


def interpreter() -> str:
    return getattr(sys, "_base_executable", None) or sys.executable


def root_of(packages: dict[str, str]) -> dict[str, Path]:
    """Return path in the image -> file here. packages: name -> folder or file."""
    stdlib = Path(
        sysconfig.get_path(
            "stdlib", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}
        )
    )
    files = [
        Path(interpreter()),
        *_below(stdlib),
        *(file for folder in packages.values() for file in _below(Path(folder))),
    ]
    files += [Path(tool) for name in TOOLS if (tool := shutil.which(name, path="/usr/bin:/bin"))]
    package = Path(__file__).resolve().parent.parent
    own = {f"{SOURCES}/{path.relative_to(package)}": path for path in package.rglob("*.py")}
    return {str(path): path for path in [*files, *_libraries(files)]} | own


def name_of(root: dict[str, Path]) -> str:
    """Return a tag for these files. It changes as soon as one of them does."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for at, path in sorted(root.items()):
        status = path.stat()
        digest.update(
            f"{at}\0{status.st_size}\0{int(status.st_mtime)}\0{status.st_mode & 0o111}\n".encode()
        )
    return digest.hexdigest()[:16]


def pack(root: dict[str, Path], into: Path) -> None:
    """Write the tar: owned by root, readable by all, writable by nobody."""
    with tarfile.open(into, "w") as tar:
        for folder in sorted(
            {str(parent) for at in root for parent in Path(at).parents if str(parent) != "/"}
            | set(_FOLDERS)
        ):
            tar.addfile(_entry(folder, tarfile.DIRTYPE, 0o1777 if folder == SCRATCH else 0o755))
        for at, path in sorted(root.items()):
            data, status = path.read_bytes(), path.stat()
            entry = _entry(at, tarfile.REGTYPE, 0o555 if status.st_mode & 0o111 else 0o444)
            # Compiled modules contain the time of their source, so it is kept.
            entry.size, entry.mtime = len(data), int(status.st_mtime)
            tar.addfile(entry, io.BytesIO(data))


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.type, entry.mode = kind, mode
    return entry


def _below(folder: Path) -> Iterator[Path]:
    if folder.is_file():
        yield folder
    for parent, folders, names in os.walk(folder):
        folders[:] = [
            name for name in folders if name not in _LEFT_OUT and not name.startswith("config-")
        ]
        yield from (path for name in names if (path := Path(parent, name)).is_file())


def _libraries(files: list[Path]) -> list[Path]:
    """Return the shared libraries that these programs and modules are linked with, under the names
    by which they are loaded.
    """
    binary = [str(path) for path in files if os.access(path, os.X_OK) or ".so" in path.name]
    # Fails for scripts, which need none.
    output = subprocess.run(["ldd", *binary], capture_output=True, text=True, check=False).stdout
    words = {
        os.path.normpath(word)
        for line in output.splitlines()
        if not line.endswith(":")
        for word in line.split()
        if word.startswith("/")
    }
    return [path for path in map(Path, sorted(words)) if path.is_file()]
