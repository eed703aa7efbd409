"""HumanEval+, HumanEval's 164 tasks with some 750 inputs each (EvalPlus, arXiv:2305.01210). Gated: none of its tasks may be trained on."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.benchmarks.humaneval import STOP
from evaluation.generation.decoder import Sampling
from problems.schema import Problem

CONVENTIONS = (
    "greedy; asked as HumanEval; judged as evalplus 0.3.1 does, base and plus inputs apart"
)


def humanevalplus(problems: Sequence[Problem]) -> Benchmark:
    tasks = [problem for problem in problems if problem.source == "humanevalplus"]
    sampling = Sampling(max_new_tokens=768)  # upstream's
    return from_problems(
        "humaneval+",
        tasks,
        sampling,
        completes=True,
        conventions=CONVENTIONS,
        upstream="HumanEval/{}",
        stop=(*STOP, "\n```", "\nassert "),
    )
