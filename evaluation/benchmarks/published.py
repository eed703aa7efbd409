"""A published benchmark: its data source, its prompts, and how its completions are judged.

Each file of this folder with a `BENCHMARKS` tuple adds benchmarks; registry.py finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from artifacts.hashing import hash_file, hash_folder
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.window import between
from evaluation.judging.harness import Harness
from problems.columns import ProblemError
from problems.schema import Problem
from problems.sources.registry import load
from problems.sources.rows import local_rows
from problems.sources.source import Row, Source


@dataclass(frozen=True)
class Published:
    """One benchmark of this folder."""

    name: str
    source: Source
    harness: Callable[[Opened, Path], Harness]  # makes it from an opened benchmark and the home
    benchmark: Callable[[Sequence[Problem]], Benchmark]
    in_pipeline: bool = False  # scored in every pipeline run if its file is known
    custom: bool = False  # defined by a YAML file of the user


@dataclass(frozen=True)
class Opened:
    """A benchmark whose file was found. `window`: its window of dates, if the name has one."""

    name: str
    published: Published
    data: Path
    window: str = ""

    @property
    def source(self) -> Source:
        return self.published.source

    def harness(self, home: Path) -> Harness:
        return self.published.harness(self, home)

    def benchmark(self) -> Benchmark:
        """Return the benchmark that prompts a model. Raises ProblemError."""
        return self.published.benchmark(self.problems())

    def problems(self) -> list[Problem]:
        """Return all problems: a part of them would score something else under this name.

        Raises ProblemError for the first row that cannot be read.
        """
        loaded = load(self.source.name, self.data)
        if loaded.rejected:
            first = loaded.rejected[0]
            raise ProblemError(
                f"{len(loaded.rejected)} of {loaded.rows} rows cannot be read: {first.reason}",
                first.mend,
                first.row,
            )
        return between(loaded.problems, self.window) if self.window else loaded.problems

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield (place, row) of the file. Raises ProblemError for a row that cannot be read."""
        for where, row in local_rows(self.source, self.data):
            if isinstance(row, ProblemError):
                raise row
            yield where, row

    @property
    def digest(self) -> str:
        """Return the first 12 hex digits of the data's sha256."""
        return (hash_file(self.data) if self.data.is_file() else hash_folder(self.data))[:12]
