"""HumanEval+: HumanEval's 164 tasks, some 750 inputs each (EvalPlus, arXiv:2305.01210). Gated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.benchmarks.humaneval import STOP
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.evalplus import humaneval_task, plus_harness
from evaluation.judging.harness import Harness
from evaluation.sampling import Sampling
from problems.schema import Problem
from problems.sources.registry import SOURCES

CONVENTIONS = (
    "greedy; asked as HumanEval; judged as evalplus 0.3.1 does, base and plus inputs apart"
)


def humanevalplus(problems: Sequence[Problem]) -> Benchmark:
    tasks = [problem for problem in problems if problem.source == "humanevalplus"]
    sampling = Sampling(max_new_tokens=768)  # as upstream
    return from_problems(
        "humaneval+",
        tasks,
        sampling,
        completes=True,
        conventions=CONVENTIONS,
        upstream="HumanEval/{}",
        stop=(*STOP, "\n```", "\nassert "),
    )


def harness(at: Opened, home: Path) -> Harness:
    return plus_harness(at.name, at.source.name, at.rows(), humaneval_task, at.digest, home)


BENCHMARKS = (Published("humaneval+", SOURCES["humanevalplus"], harness, humanevalplus),)
