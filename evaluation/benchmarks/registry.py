"""The benchmarks by name, found in the files of this folder; a new one needs `BENCHMARKS`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from evaluation import benchmarks
from evaluation.benchmarks import custom
from evaluation.benchmarks.benchmark import Benchmark, NotMeasured
from evaluation.benchmarks.published import Opened, Published
from problems.catalogue import read_sources
from problems.columns import ProblemError
from problems.sources.place import Place


@cache
def published() -> dict[str, Published]:
    """Return every published benchmark by name, in alphabetical order."""
    modules = [
        importlib.import_module(f"{benchmarks.__name__}.{benchmarks_found.name}")
        for benchmarks_found in pkgutil.iter_modules(benchmarks.__path__)
    ]
    benchmarks_found = [each for module in modules for each in getattr(module, "BENCHMARKS", ())]
    return {each.name: each for each in sorted(benchmarks_found, key=lambda each: each.name)}


def in_pipeline() -> list[str]:
    """Return the public benchmarks that pipeline runs score if their files are known."""
    return [each.name for each in published().values() if each.in_pipeline]


def opened(name: str, data: Path | None, home: Path) -> Opened:
    """Return the benchmark over the given file, else the one that this home knows; or that of a
    YAML file.

    Raises ProblemError or FileNotFoundError.
    """
    if name.endswith((".yaml", ".yml")):
        settings = custom.read(Path(name))
        place = Place(data or settings.data)
        return Opened(settings.name, custom.published(settings), place, home)
    bare, _, window = name.partition("@")
    if bare not in published():
        raise ProblemError(
            f"unknown benchmark {name!r}",
            f"there are: {', '.join(published())}, or a YAML file of your own",
            "--benchmark",
        )
    benchmark = published()[bare]
    place = Place(data) if data else read_sources(home).get(benchmark.source.name, Place())
    if place.path is None and place.hub is None:
        raise ProblemError(
            f"no file of {name} is known here",
            f"give --data FILE, or `ratchet data add {benchmark.source.name} --path FILE`",
            "--data",
        )
    if place.path and not place.path.exists():
        raise FileNotFoundError(f"{name}: {place.path} does not exist: check --data")
    return Opened(name, benchmark, place, home, window)


def load_public(
    name: str, place: Place | None, home: Path, hub: bool = False
) -> Benchmark | NotMeasured:
    """Return a public benchmark from its own file or the hub; where that fails, the reason.

    One row that cannot be read leaves the whole benchmark unmeasured: a part of the tasks would be
    another benchmark. Raises KeyError for an unknown name.
    """
    benchmark = published()[name]
    if place is None and not hub:
        return NotMeasured(
            name,
            f"no file of it was given, and the hub is off: `ratchet data add {name} --path FILE` "
            "adds one",
        )
    try:
        return Opened(name, benchmark, place or Place(), home).benchmark()
    except (OSError, ProblemError) as error:
        return NotMeasured(name, f"its data cannot be read: {' '.join(str(error).split())[:200]}")
