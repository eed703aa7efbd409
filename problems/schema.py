"""The one schema of a problem, as a dataclass in memory and as parquet on disk."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sandbox.protocol import AssertTest, CallTest, Job, Limits, StdioTest, Test

SCHEMA_VERSION = 1
Split = Literal["demonstrations", "train", "validation", "heldout"]


@dataclass(frozen=True)
class Problem:
    """A task with tests that decide it. `problem_id` is `source/key`, unique over all sources."""

    problem_id: str
    source: str
    statement: str
    style: Literal["call", "assert", "stdio"]
    tests: tuple[dict[str, Any], ...]  # call: args, kwargs, expected; stdio: stdin, stdout; assert: source (defines check(candidate))
    entry_point: str | None = None
    starter_code: str = ""  # trusted text that an answer may rely on (imports, helper functions, a signature)
    solutions: tuple[str, ...] = ()
    visible_tests: int = 0  # how many of `tests`, from the front, the statement may show
    limits: Limits = Limits()
    tolerance: float | None = None
    tags: tuple[str, ...] = ()
    split: Split = "train"
    licence: str = "unknown"
    gated: bool = False  # of a benchmark that is reported: never trained on
    extra: dict[str, Any] = field(default_factory=dict)  # whatever else a source knows (a demonstration, a composition, a release)

    def job(self, source: str, job_id: str) -> Job:
        """The sandbox job that decides whether `source` solves this problem."""
        made: dict[str, Any] = {"call": _call, "stdio": StdioTest, "assert": AssertTest}
        tests: tuple[Test, ...] = tuple(made[self.style](**test) for test in self.tests)
        return Job(job_id, source, self.style, tests, self.entry_point, self.starter_code, self.limits, self.tolerance)

    @property
    def content_hash(self) -> str:
        """sha256 over everything that decides what the problem is; equal on every machine."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True, ensure_ascii=True, default=str).encode()).hexdigest()


def _call(args: list[Any] | tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, expected: Any = None) -> CallTest:
    return CallTest(tuple(args), kwargs or {}, expected)


def write_parquet(problems: list[Problem], path: Path) -> str:
    """Writes the problems in order of `problem_id`; returns the content hash of the set, which does not depend on row order."""
    raise NotImplementedError  # the problems room owns this


def read_parquet(path: Path) -> list[Problem]:
    """Raises ProblemError naming file, row and column of what is missing or of the wrong type."""
    raise NotImplementedError
