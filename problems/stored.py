"""The problems of a stored dataset, read once by the stages of a process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from problems.schema import Problem, read_parquet

FILE = "problems.parquet"


def stored_problems(folder: Path) -> list[Problem]:
    """Return a dataset's problems. Raises as `read_parquet`.

    The last two datasets stay in memory until their file changes.
    """
    file = folder / FILE
    status = file.stat()
    return list(_read(file, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=2)
def _read(file: Path, changed_at: int, size: int) -> tuple[Problem, ...]:
    return tuple(read_parquet(file))
