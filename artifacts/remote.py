"""Files under any fsspec URL, put there so that what arrived is known to be what was sent."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_file

TRIES = 3


class CorruptUpload(OSError):
    """The store keeps giving back other bytes than it was given."""


def put(system: Any, path: Path, remote: str) -> None:
    """Uploads a file, reads it back and compares the hashes; again where they differ. Raises CorruptUpload after TRIES.

    system: an fsspec file system. Reading back costs the transfer once more, and asks nothing of the store but its bytes.
    """
    wanted = hash_file(path)
    if "file" in system.protocol:  # an object store has no folders to make
        system.makedirs(remote.rpartition("/")[0], exist_ok=True)
    for _ in range(TRIES):
        system.put_file(str(path), remote)
        with system.open(remote, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == wanted:
                return
    raise CorruptUpload(f"{remote}: {TRIES} uploads of {path} came back with other bytes: the store or the way to it is broken")
