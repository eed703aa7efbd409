"""The benchmarks by name, found in the files of this folder; a new one is a `Published`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from evaluation import benchmarks
from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.benchmarks import custom
from evaluation.benchmarks.benchmark import Benchmark, NotMeasured
from evaluation.benchmarks.published import Opened, Published
from problems.catalogue import read_sources
from problems.columns import ProblemError
from problems.reading.place import Place
from sandbox.discovery import entries


@cache
def published() -> dict[str, Published]:
    """Return every published benchmark by name, in alphabetical order."""
    return dict(sorted(entries(benchmarks, Published, "name").items()))


def opened(name: str, data: Path | None, home: Path) -> Opened:
    """Return the benchmark over the given file, else the one that this home knows; or that of a
    YAML file.

    Raises ProblemError or FileNotFoundError.
    """
    if is_custom(name):
        settings = custom.read(Path(name))
        place = Place(data or settings.data)
        return Opened(settings.name, custom.published(settings), place, home)
    bare, _, window = name.partition("@")
    if bare not in published():
        raise ProblemError(
            f"unknown benchmark {name!r}",
            f"known are {', '.join(published())}, or a YAML file of your own",
            "--benchmark",
        )
    benchmark = published()[bare]
    place = Place(data) if data else read_sources(home).get(benchmark.source.name, Place())
    if place.path is None and place.hub is None:
        raise ProblemError(
            f"no file of {name} was added",
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
    bare, _, window = name.partition("@")
    benchmark = published()[bare]
    if place is None and not hub:
        return NotMeasured(
            name,
            "no file of it was given, and the hub is off: `ratchet data add "
            f"{benchmark.source.name} --path FILE` adds one",
        )
    return _loaded(Opened(name, benchmark, place or Place(), home, window))


def measured(settings: BenchmarkSettings, home: Path, hub: bool = False) -> Benchmark | NotMeasured:
    """Return a profile's benchmark with its settings applied; where that fails, the reason.

    Only tasks that no training may use are a benchmark, and only those that can be measured on this
    machine. Raises KeyError for an unknown name.
    """
    name = settings.name
    if is_custom(name):
        try:
            benchmark = _loaded(opened(name, None, home))
        except (OSError, ProblemError) as error:
            return NotMeasured(name, _short(error))
    else:
        place = read_sources(home).get(published()[name.partition("@")[0]].source.name)
        benchmark = load_public(name, place, home, hub or place is not None)
        if isinstance(benchmark, Benchmark) and (
            trainable := [each.problem_id for each in benchmark.problems if not each.gated]
        ):
            return NotMeasured(
                name,
                f"{len(trainable)} of its {len(benchmark.problems)} tasks may be trained on, the "
                f"first is {trainable[0]}: add the file of the test split",
            )
    if isinstance(benchmark, NotMeasured):
        return benchmark
    return benchmark.with_settings(settings).measurable()


def score_name(name: str) -> str:
    """Return the name that scorecards have for a profile's benchmark. A YAML file names its own.

    Raises ProblemError for an unknown name, and FileNotFoundError.
    """
    if is_custom(name):
        return custom.read(Path(name)).name
    bare = name.partition("@")[0]
    if bare not in published():
        raise ProblemError(
            f"unknown benchmark {name!r}",
            f"known are {', '.join(published())}, or a YAML file of your own",
        )
    return name


def files_of(settings: BenchmarkSettings, home: Path) -> list[Path]:
    """Return the files that a profile's benchmark is read from; none if it comes from the hub."""
    name = settings.name
    if is_custom(name):
        return [Path(name), custom.read(Path(name)).data]
    place = read_sources(home).get(published()[name.partition("@")[0]].source.name)
    return [place.path] if place and place.path else []


def is_custom(name: str) -> bool:
    """Return whether the name is that of a YAML file."""
    return name.endswith((".yaml", ".yml"))


def _loaded(at: Opened) -> Benchmark | NotMeasured:
    try:
        return at.benchmark()
    except (OSError, ProblemError) as error:
        return NotMeasured(at.name, f"its data cannot be used: {_short(error)}")


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def unguarded(names: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Return the published benchmarks among `names` that no data is compared with.

    sources: those whose gated tasks cleaning compares with, beside the fingerprints of the package.
    """
    from problems.cleaning.fingerprints import guarded  # it imports numpy

    known = guarded() | set(sources)
    return [
        name
        for name in names
        if (benchmark := published().get(name.partition("@")[0]))
        and benchmark.source.name not in known
    ]


def check_guards(names: Sequence[str], gate: str, sources: Iterable[str]) -> list[str]:
    """Return the unguarded benchmarks of a profile.

    Raises ProblemError if `gate`, the one that decides on promotions, is among them.
    """
    missing = unguarded(dict.fromkeys([*names, gate]), sources)
    if gate in missing:
        source = published()[gate.partition("@")[0]].source.name
        raise ProblemError(
            f"no data is compared with the tasks of {gate}, so training may see them",
            f"run `ratchet data add {source} --path FILE`, or name another benchmark",
            "policy.benchmark",
        )
    return missing
