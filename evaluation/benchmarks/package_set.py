"""The packages of a benchmark: pinned in a file beside it, installed into a folder of the home that
its programs import from.

Their versions differ from Ratchet's own, so they never enter its environment.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.integrity import reading

PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")
# The build tools of the environment itself: three packages come as source.
OPTIONS = ("--no-deps", "--require-hashes", "--no-build-isolation", "--quiet")


@dataclass(frozen=True)
class PackageSet:
    """The pinned packages of one benchmark. pins: a requirements file with hashes."""

    name: str
    pins: Path

    @property
    def digest(self) -> str:
        """Hash of all pins and of the Python version: 12 hex digits."""
        version = ".".join(map(str, sys.version_info[:2]))
        return hashlib.sha256(f"{version}\n{self.pins.read_text()}".encode()).hexdigest()[:12]

    @property
    def versions(self) -> dict[str, str]:
        """Return package -> version."""
        return dict(re.findall(r"^([\w.-]+)==(\S+)", self.pins.read_text(), re.MULTILINE))

    def folder(self, home: Path) -> Path:
        """Return the folder in this home, whether it is installed or not."""
        return home / "packages" / f"{self.name}-{self.digest}"

    def installed(self, home: Path) -> Path | None:
        """Return the folder if it is complete."""
        folder = self.folder(home)
        return folder if folder.is_dir() else None

    def install(self, home: Path) -> Path:
        """Install the packages if they are not, and return their folder. Folders of other versions
        are removed.

        The folder gets its name when it is complete. Raises subprocess.CalledProcessError with
        pip's output if a package cannot be installed.
        """
        folder = self.folder(home)
        with _alone(folder.parent / f".{self.name}.lock"):
            if folder.is_dir():
                return folder
            partial = folder.with_name(f".{folder.name}")
            shutil.rmtree(partial, ignore_errors=True)
            command = [*PIP, "install", *OPTIONS, "--target", str(partial), "-r", str(self.pins)]
            subprocess.run(
                [sys.executable, *command],
                check=True,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONPATH": ""},
                umask=0o022,  # programs may have another uid
            )
            record = {"packages": self.versions, "bytes": _bytes_of(partial)}
            write_atomic(partial / "installed.json", json.dumps(record, indent=1))
            partial.rename(folder)
            for old in folder.parent.glob(f"{self.name}-*"):
                if old != folder:
                    shutil.rmtree(old)
        return folder


def size_of(folder: Path) -> int:
    """Return the size in bytes of an installed set. Raises CorruptArtifact."""
    file = folder / "installed.json"
    with reading(file, f"delete {folder}, and install the set again"):
        return int(json.loads(file.read_text(encoding="utf-8"))["bytes"])


def _bytes_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait until no other process installs the same set."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
