"""Upload files to any fsspec URL, and verify that what arrived is what was sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_file

TRIES = 3


class CorruptUpload(OSError):
    """The store repeatedly returned other bytes than were uploaded."""


def put(system: Any, path: Path, remote: str) -> None:
    """Upload a finished file, read it back and compare the hashes; retry if they differ.

    system: an fsspec file system. Reading back costs a second transfer and needs no support from
    the store. Raises CorruptUpload after TRIES uploads.
    """
    _upload(system, remote, hash_file(path), lambda: system.put_file(str(path), remote))


def put_bytes(system: Any, content: bytes, remote: str) -> None:
    """Upload bytes in the same way: a file that still grows is read once and uploaded as it was."""
    _upload(
        system,
        remote,
        hashlib.sha256(content).hexdigest(),
        lambda: system.pipe_file(remote, content),
    )


def _upload(system: Any, remote: str, expected: str, send: Callable[[], None]) -> None:
    if "file" in system.protocol:  # an object store has no folders to make
        system.makedirs(remote.rpartition("/")[0], exist_ok=True)
    for _ in range(TRIES):
        send()
        with system.open(remote, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == expected:
                return
    raise CorruptUpload(
        f"{remote}: {TRIES} uploads read back with different bytes: check the object store and "
        "the network"
    )
