"""BigCodeBench, 1140 tasks with unittests (Zhuo et al. 2024, arXiv:2406.15877), asked as code or in prose; `hard` is 148 of them. Gated."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.generation.decoder import Sampling
from problems.schema import Problem
from problems.sources.bigcodebench import instructed

CONVENTIONS = "greedy; upstream's unittests, each method by itself, with decoys; a task that needs a package which is not here is not measured"
STOP = ("\nclass", "\nif __name__", "\nprint(", "\n```")
SAMPLING = Sampling(max_new_tokens=1280)


def complete(problems: Sequence[Problem]) -> Benchmark:
    return from_problems(
        "bigcodebench", problems, SAMPLING, completes=True, conventions=CONVENTIONS, upstream="BigCodeBench/{}", stop=STOP
    )  # fmt: skip


def instruct(problems: Sequence[Problem]) -> Benchmark:
    return from_problems(
        "bigcodebench-instruct", [*map(instructed, problems)], SAMPLING, conventions=CONVENTIONS, upstream="BigCodeBench/{}", stop=STOP
    )  # fmt: skip
