"""SWE-bench and SWE-smith: their tests need the image of a repository, which is not built."""

from __future__ import annotations

from problems.columns import ProblemError
from problems.reading.source import Record, Row
from problems.shapes.shape import RowShape


def read(row: Row, where: str) -> Record:
    """Raise ProblemError: the row has no files."""
    at = row.get("image_name") or f"{row['repo']} at {str(row.get('base_commit', ''))[:12]}"
    raise ProblemError(
        f"{row['instance_id']} needs an image of {at}, and images are not built",
        "convert it with Harbor's adapter; a folder whose tests need only Python is read",
        where,
    )


SWE = RowShape(
    "swe",
    "SWE-bench and SWE-smith: refused by name",
    ("instance_id", "repo", "patch", "FAIL_TO_PASS"),
    read,
    (),
)
