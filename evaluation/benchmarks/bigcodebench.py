"""BigCodeBench, 1140 tasks with unittests (Zhuo et al. 2024, arXiv:2406.15877), asked as code or in
prose; `hard` is 148 of them.

Gated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging import bigcodebench
from evaluation.judging.harness import Harness
from evaluation.sampling import Sampling
from problems.columns import ProblemError
from problems.schema import Problem
from problems.sources.bigcodebench import instructed
from problems.sources.registry import SOURCES

CONVENTIONS = (
    "greedy; upstream's unittests, each method by itself, with decoys; a task that needs a "
    "package which is not here is not measured"
)
STOP = ("\nclass", "\nif __name__", "\nprint(", "\n```")
SAMPLING = Sampling(max_new_tokens=1280)


def complete(problems: Sequence[Problem]) -> Benchmark:
    return from_problems(
        "bigcodebench",
        problems,
        SAMPLING,
        completes=True,
        conventions=CONVENTIONS,
        upstream="BigCodeBench/{}",
        stop=STOP,
    )


def instruct(problems: Sequence[Problem]) -> Benchmark:
    return from_problems(
        "bigcodebench-instruct",
        [*map(instructed, problems)],
        SAMPLING,
        conventions=CONVENTIONS,
        upstream="BigCodeBench/{}",
        stop=STOP,
    )


def harness(most: int) -> Callable[[Opened, Path], Harness]:
    """Return a function that makes the harness. most: number of tasks in this release."""

    def make(at: Opened, home: Path) -> Harness:
        tasks = {
            made.task_id: made
            for made in (bigcodebench.task(row, where) for where, row in at.rows())
        }
        if len(tasks) > most:
            raise ProblemError(
                f"{len(tasks)} tasks, {at.name} has {most}",
                "give --data the file of bigcode/bigcodebench-hard",
                str(at.data),
            )
        return bigcodebench.CodeHarness(
            at.name, bigcodebench.VERSION, "bigcodebench 0.2.5", tasks, at.digest, at.source.name
        )

    return make


BENCHMARKS = tuple(
    Published(name, SOURCES["bigcodebench"], harness(most), ask)
    for name, most, ask in (
        ("bigcodebench", 1140, complete),
        ("bigcodebench-instruct", 1140, instruct),
        ("bigcodebench-hard", 148, complete),
    )
)
