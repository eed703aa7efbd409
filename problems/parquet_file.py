"""Arrow's errors about a parquet file, as one line that names the file and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from problems.columns import ProblemError

FIX = "fetch or write it again"


def incomplete(error: Exception, where: str, fix: str = FIX, kind: str = "parquet") -> ProblemError:
    """Return the error for a file that Arrow cannot read."""
    reason = f"not a complete {kind} file ({str(error).splitlines()[0]})"
    return ProblemError(reason, fix, where)


@contextmanager
def reading_parquet(where: str, fix: str = FIX) -> Iterator[None]:
    """Raise ProblemError for a file that is cut off, damaged inside, or no parquet at all.

    Arrow raises OSError for pages that it cannot decompress. FileNotFoundError propagates.
    """
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise incomplete(error, where, fix) from error
