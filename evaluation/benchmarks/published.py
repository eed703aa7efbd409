"""A published benchmark: its data source, and the function that makes it from that data.

Each `Published` in a file of this folder is a benchmark; registry.py finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.package_set import PackageSet
from evaluation.benchmarks.window import between
from problems.columns import ProblemError
from problems.reading.hub import hub_rows
from problems.reading.place import Place
from problems.reading.rows import local_rows
from problems.reading.source import Row, Source
from problems.schema import Problem
from problems.sources.registry import load, revision_of


@dataclass(frozen=True)
class Published:
    """One benchmark of this folder."""

    name: str
    source: Source
    make: Callable[[Opened], Benchmark]
    custom: bool = False  # defined by a YAML file of the user
    packages: PackageSet | None = None  # what its programs import: `ratchet benchmarks install`


@dataclass(frozen=True)
class Opened:
    """A benchmark and where its data is. `window`: its window of dates, if the name has one.

    home: RATCHET_HOME, which caches results of the reference solutions.
    """

    name: str
    published: Published
    place: Place
    home: Path
    window: str = ""

    @property
    def source(self) -> Source:
        return self.published.source

    def benchmark(self) -> Benchmark:
        """Return the benchmark with its harness. Raises OSError and ProblemError."""
        return self.published.make(self)

    @cached_property
    def problems(self) -> list[Problem]:
        """All problems: a part of them would score something else under this name.

        Raises ProblemError for the first row that cannot be read.
        """
        loaded = load(self.source.name, self.place)
        if loaded.rejected:
            first = loaded.rejected[0]
            raise ProblemError(
                f"{len(loaded.rejected)} rows cannot be read, the first: {first.reason}",
                first.fix,
                first.row,
            )
        return between(loaded.problems, self.window) if self.window else loaded.problems

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield (location, row). Raises ProblemError for a row that cannot be read."""
        rows = (
            local_rows(self.source, self.place.path)
            if self.place.path
            else hub_rows(self.source, revision_of(self.source.name, self.place))
        )
        for where, row in rows:
            if isinstance(row, ProblemError):
                raise row
            yield where, row

    @property
    def digest(self) -> str:
        """The first 12 hex digits of the file's sha256; for a dataset on the hub, its commit."""
        return self.place.content.rpartition("@")[2][:12]
