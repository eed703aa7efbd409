"""A file system of its own, so that filling it affects nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def mount(folder: Path, size_mib: int) -> Path:
    """Mount a disk, unless it is mounted; skip the test where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(folder)]
    if not folder.is_mount():
        mounted = subprocess.run(command, capture_output=True, check=False)
        if mounted.returncode:
            pytest.skip(f"mounting a tmpfs needs root: {mounted.stderr.decode().strip()}")
    return folder


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[Path]:
    """Mount a disk; skip the test where that is not allowed."""
    disk = mount(folder, size_mib)
    try:
        yield disk
    finally:
        unmount(disk)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Fill a disk completely meanwhile."""
    filler = disk / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            for size in (2**20, 2**12):
                with suppress(OSError):
                    while True:
                        file.write(bytes(size))
        yield
    finally:
        filler.unlink()
