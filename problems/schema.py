"""The schema of a problem: a dataclass in memory, a parquet row on disk.

columns.py and encoding.py are used instead of pydantic, which reads 10,000 rows in 0.1 s (here: 0.7
s) but loses tuples, sets, bytes and keys of tests, and does not name a column's misspelling.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from artifacts.hashing import hash_data
from problems.columns import COLUMNS, JOB_COLUMNS, ProblemError, check_columns
from problems.encoding import dumps, loads
from problems.parquet_file import reading_parquet
from sandbox.languages import PYTHON, language_of
from sandbox.limits import LIMIT_KEYS
from sandbox.protocol import Job, Limits
from sandbox.styles import STYLES
from sandbox.styles.style import Style

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 3
Split = Literal["demonstrations", "train", "validation", "heldout"]


@cache
def problem_schema() -> pa.Schema:
    """Return the columns of a parquet file of problems."""
    import pyarrow as pa  # 0.1 s to import, which `ratchet status` does without

    return pa.schema(
        [
            ("problem_id", pa.string()),
            ("source", pa.string()),
            ("statement", pa.string()),
            ("style", pa.string()),
            ("tests", pa.list_(pa.string())),  # each a test as JSON, see problems/encoding.py
            ("entry_point", pa.string()),
            ("starter_code", pa.string()),
            ("solutions", pa.list_(pa.string())),
            ("visible_tests", pa.int64()),
            (
                "limits",
                pa.struct(
                    [
                        (key, pa.float64() if key.endswith("_s") else pa.int64())
                        for key in LIMIT_KEYS
                    ]
                ),
            ),
            ("tolerance", pa.float64()),
            ("tags", pa.list_(pa.string())),
            ("split", pa.string()),
            ("licence", pa.string()),
            ("gated", pa.bool_()),
            ("extra", pa.string()),  # an object in the same JSON encoding
            ("compare", pa.string()),  # null means exact
            ("checker", pa.string()),
        ],
        metadata={"ratchet.problems.version": str(SCHEMA_VERSION)},
    )


@dataclass(frozen=True)
class Problem:
    """A task with the tests that decide it. The `problem_id` is `source/key`, unique overall."""

    problem_id: str
    source: str
    statement: str
    style: str  # a name of sandbox/styles/
    # call: args, kwargs, expected; stdio: stdin, stdout; assert, unittest: source
    tests: tuple[dict[str, Any], ...]
    entry_point: str | None = None
    # trusted text that a completion may rely on (imports, helper functions, a signature)
    starter_code: str = ""
    solutions: tuple[str, ...] = ()
    visible_tests: int = 0  # the statement may show this many of the first tests
    limits: Limits = Limits()  # noqa: RUF009  # frozen
    tolerance: float | None = None
    tags: tuple[str, ...] = ()
    split: Split = "train"
    licence: str = "unknown"
    gated: bool = False  # belongs to a reported benchmark: never trained on
    compare: str = "exact"  # see sandbox.protocol.Job
    checker: str | None = None  # untrusted Python source: see sandbox.protocol.Job
    # whatever else a source knows (a demonstration, a composition, a release)
    extra: dict[str, Any] = field(default_factory=dict)

    def job(self, source: str, job_id: str) -> Job:
        """Return the sandbox job that decides whether `source` solves this problem."""
        problem = {
            **{name: getattr(self, column) for name, column in JOB_COLUMNS.items()},
            "packages": self.packages,
            "in_place": self.extra.get("in_place") is True,
            "language": self.language,
        }
        return Job.read({"id": job_id, "source": source, "problem": problem})

    @property
    def kind(self) -> Style:
        """The style of its tests."""
        return STYLES[self.style]

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages outside the standard library that solutions or tests import, if known.

        If they are not installed, the problem is not measured.
        """
        return tuple(self.extra.get("packages", ()))

    @property
    def language(self) -> str:
        """The language of its programs, by `extra["language"]`: Python, unless style and language
        are those of another one (sandbox/languages/).
        """
        written = str(self.extra.get("language") or PYTHON).lower()
        return language_of(written) if "language" in self.kind.options else PYTHON

    @property
    def samples(self) -> tuple[str, ...]:
        """Programs that a model wrote for the problem, right or wrong."""
        return self._texts("samples")

    @property
    def agreement(self) -> float | None:
        """Share of the samples that pass the tests, if a solver verified the problem.

        None if a reference solution did.
        """
        share = self.extra.get("agreement")
        by_solver = self.extra.get("verified_by") == "solver"
        return float(share) if by_solver and isinstance(share, (int, float)) else None

    @property
    def parents(self) -> tuple[str, ...]:
        """Ids of the problems that it was derived from."""
        return self._texts("parents")

    def _texts(self, key: str) -> tuple[str, ...]:
        """Return the texts under a key of `extra`, where a user's own file may hold anything."""
        values = self.extra.get(key)
        return (
            tuple(value for value in values if isinstance(value, str))
            if isinstance(values, (list, tuple))
            else ()
        )

    @property
    def content_hash(self) -> str:
        """sha256 over everything that defines the problem; equal on every machine.

        Raises TypeError if a test is not plain data.
        """
        return hash_data(to_row(self))


# Columns added later. Default values are left out, so that earlier hashes stay the same.
DEFAULTS = {
    "compare": "exact",
    "checker": None,
}


def to_row(problem: Problem) -> dict[str, Any]:
    """Return one row of the parquet file: JSON types only, tests and extra as text."""
    return {
        **{
            name: value
            for name in COLUMNS
            if (value := getattr(problem, name)) != DEFAULTS.get(name, ...)
        },
        "tests": [dumps(dict(sorted(test.items()))) for test in problem.tests],
        "solutions": list(problem.solutions),
        "limits": {
            key: float(value) if key.endswith("_s") else value
            for key, value in asdict(problem.limits).items()
            if value is not None
        },
        "tolerance": None if problem.tolerance is None else float(problem.tolerance),
        "tags": list(problem.tags),
        "extra": dumps(dict(sorted(problem.extra.items()))),
    }


def from_record(record: Mapping[str, Any], where: str) -> Problem:
    """Build a problem from plain values and check every column; unknown columns go to `extra`.

    record: tests as a list of objects, limits and extra as objects; all columns but the first five
    may be absent and then have their default. Raises ProblemError that begins with `where` and
    names the column and the fix.
    """
    known = check_columns(record, where)
    extra = dict(known.pop("extra", {})) | {
        key: value for key, value in record.items() if key not in COLUMNS
    }
    limits = Limits.read(known.pop("limits", {}))
    keys = STYLES[known["style"]].keys
    known["tests"] = [  # null stands for an absent key, as in a job
        {key: value for key, value in test.items() if value is not None or keys[key].nullable}
        for test in known["tests"]
    ]
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in known.items()
    }
    return Problem(**values, limits=limits, extra=extra)


def from_row(row: Mapping[str, Any], where: str) -> Problem:
    """Inverse of `to_row`. Raises ProblemError as `from_record` does."""
    record = {
        name: value for name, value in row.items() if value is not None or name not in DEFAULTS
    }
    for column in ("tests", "extra"):
        texts = record.get(column)
        try:
            if isinstance(texts, str):
                record[column] = loads(texts)
            elif isinstance(texts, list):
                record[column] = [loads(text) for text in texts]
        except (TypeError, ValueError, RecursionError) as error:
            raise ProblemError(
                f"column {column} holds no JSON text: {error}",
                "write it with problems.encoding.dumps",
                where,
            ) from error
    return from_record(record, where)


def set_hash(problems: Iterable[Problem]) -> str:
    """Return the sha256 of a set of problems; their order does not matter."""
    return hash_of((problem.problem_id, problem.content_hash) for problem in problems)


def hash_of(hashes: Iterable[tuple[str, str]]) -> str:
    """Compute `set_hash` from ids and content hashes."""
    return hash_data(sorted([problem_id, digest] for problem_id, digest in hashes))


def refuse_duplicates(problems: Iterable[Problem], where: str) -> None:
    """Raise ProblemError with the first id that occurs twice, and its rows."""
    first: dict[str, int] = {}
    for row, problem in enumerate(problems):
        if (before := first.setdefault(problem.problem_id, row)) != row:
            raise ProblemError(
                f"problem_id {problem.problem_id!r} is in rows {before} and {row}",
                "give each problem an id of its own",
                where,
            )


def write_parquet(problems: list[Problem], path: Path) -> str:
    """Write the problems in order of `problem_id`; return the content hash of the set.

    The file is written under a temporary name and renamed. The hash does not depend on the row
    order. Raises ProblemError on a duplicate id.
    """
    refuse_duplicates(problems, str(path))
    ordered = sorted(problems, key=lambda problem: problem.problem_id)
    write_table(to_table(ordered), path)
    return set_hash(ordered)


def to_table(problems: Iterable[Problem]) -> pa.Table:
    """Return a table of the problems, in their order. Their columns were checked when they were
    read, and are checked again by `read_parquet`.
    """
    import pyarrow as pa

    return pa.Table.from_pylist(list(map(to_row, problems)), schema=problem_schema())


def write_table(table: pa.Table, path: Path) -> None:
    """Write any table as parquet under a temporary name and rename it: readers never see a part."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(table, temporary, compression="zstd")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_parquet(path: Path) -> list[Problem]:
    """Read the problems in the order of the file. Unknown columns go to `extra`.

    Raises FileNotFoundError, or ProblemError naming file, row and column of what is missing or has
    the wrong type.
    """
    table = _table(path)
    problems = [
        from_row(row, f"{path}: row {number}") for number, row in enumerate(table.to_pylist())
    ]
    refuse_duplicates(problems, str(path))
    return problems


def read_columns(path: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return these columns of each row, as they are stored. Raises as `read_parquet` does."""
    return list(_table(path, names).to_pylist())


def _table(path: Path, names: Sequence[str] | None = None) -> pa.Table:
    """Return a file's table, or these columns of it."""
    import pyarrow.parquet as pq

    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: {'a folder' if path.is_dir() else 'no such file'}: give a parquet file"
        )
    with reading_parquet(str(path)):
        check_table(pq.read_schema(path), str(path))
        return pq.read_table(path, partitioning=None, columns=names)


def check_table(schema: pa.Schema, where: str) -> None:
    """Raise ProblemError unless a table of this schema can hold problems."""
    version = int((schema.metadata or {}).get(b"ratchet.problems.version", b"1"))
    if version > SCHEMA_VERSION:
        raise ProblemError(
            f"schema version {version} is newer than the latest known one, {SCHEMA_VERSION}",
            "update Ratchet",
            where,
        )
    if missing := [name for name in COLUMNS if name not in schema.names and name not in DEFAULTS]:
        raise ProblemError(
            f"row 0: missing columns: {', '.join(missing)}",
            "write the file with write_parquet",
            where,
        )
