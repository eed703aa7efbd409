"""What a checkpoint is asked, one small file a benchmark.

In: problems of one schema. Out: a `Benchmark`, or `NotMeasured` with the reason, so that a report lists what it lacks.
A new benchmark is one file here and one entry in `PUBLIC`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark, NotMeasured, from_problems
from evaluation.benchmarks.embedded import heldout, regression, validation
from evaluation.benchmarks.humaneval import humaneval
from evaluation.benchmarks.mbpp import mbpp
from problems.schema import Problem
from problems.sources.place import Place

__all__ = [
    "PUBLIC",
    "Benchmark",
    "NotMeasured",
    "from_problems",
    "heldout",
    "load_public",
    "regression",
    "validation",
]

PUBLIC: dict[str, Callable[[Sequence[Problem]], Benchmark]] = {"humaneval": humaneval, "mbpp": mbpp}


def load_public(
    name: str, path: Place | Path | None = None, hub: bool = False
) -> Benchmark | NotMeasured:
    """A public benchmark from its own file, as published, or from the hub. Where that fails it is not measured, and the reason is kept.

    A score over some of the tasks would bear the benchmark's name wrongly: one row that cannot be read leaves the whole unmeasured.
    Raises KeyError for a name that is not in PUBLIC.
    """
    from problems.columns import ProblemError
    from problems.sources.registry import load

    make = PUBLIC[name]
    if path is None and not hub:
        return NotMeasured(
            name,
            f"no file of it was given, and the hub is off: `ratchet data add {name} --path FILE` adds one",
        )
    try:
        loaded = load(name, path)
    except (OSError, ProblemError) as error:
        return NotMeasured(name, f"its data is not reachable: {' '.join(str(error).split())[:200]}")
    if loaded.rejected:
        first = loaded.rejected[0]
        return NotMeasured(
            name,
            f"{len(loaded.rejected)} of {loaded.rows} rows cannot be read, the first is {first.row}: {first.reason}; {first.mend}",
        )
    return make(loaded.problems)
