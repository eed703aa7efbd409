"""BigCodeBench, 1140 tasks with unittests (Zhuo et al. 2024, arXiv:2406.15877), prompted with code
or in prose; `hard` is 148 of them.

Gated.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.benchmarks.package_set import PackageSet
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging import bigcodebench
from evaluation.sampling import Sampling
from problems.columns import ProblemError
from problems.sources.bigcodebench import instructed
from problems.sources.registry import SOURCES

CONVENTIONS = (
    "greedy; upstream's unittests in the program's process, trust shared; a task is not measured "
    "if its packages are missing"
)
PACKAGES = PackageSet("bigcodebench", Path(__file__).with_suffix(".txt"))
STOP = ("\nclass", "\nif __name__", "\nprint(", "\n```")


def make(at: Opened, most: int, instructs: bool) -> Benchmark:
    """Return the benchmark. most: number of tasks in this release. Raises ProblemError for more."""
    folder = PACKAGES.installed(at.home)
    version = f"{bigcodebench.VERSION}+{PACKAGES.digest}" if folder else bigcodebench.VERSION
    tasks = {
        task.task_id: task for task in (bigcodebench.task(row, where) for where, row in at.rows())
    }
    if len(tasks) > most:
        raise ProblemError(
            f"{len(tasks)} tasks, {at.name} has {most}",
            "give --data the file of bigcode/bigcodebench-hard",
            str(at.place),
        )
    return from_problems(
        at.name,
        [instructed(problem) for problem in at.problems] if instructs else at.problems,
        Sampling(max_new_tokens=1280),
        completes=not instructs,
        conventions=CONVENTIONS,
        upstream="BigCodeBench/{}",
        stop=STOP,
        harness=bigcodebench.CodeHarness(
            at.name,
            version,
            "bigcodebench 0.2.5",
            tasks,
            at.digest,
            at.source.name,
            package_folder=folder,
        ),
    )


def _published(name: str, most: int, instructs: bool) -> Published:
    made = partial(make, most=most, instructs=instructs)
    return Published(name, SOURCES["bigcodebench"], made, packages=PACKAGES)


COMPLETE = _published("bigcodebench", 1140, False)
INSTRUCT = _published("bigcodebench-instruct", 1140, True)
HARD = _published("bigcodebench-hard", 148, False)
