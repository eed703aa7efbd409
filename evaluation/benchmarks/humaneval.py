"""HumanEval, 164 tasks (Chen et al. 2021, arXiv:2107.03374). Gated: none of its tasks may be trained on."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.generation.decoder import Sampling
from problems.schema import Problem

STOP = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")  # of a base model, as published
CONVENTIONS = "greedy, asked as a chat; signature and docstring stand before the answer; published unit tests, 3 s a program"


def humaneval(problems: Sequence[Problem]) -> Benchmark:
    tasks = [problem for problem in problems if problem.source == "humaneval"]
    return from_problems(
        "humaneval",
        tasks,
        Sampling(max_new_tokens=512),
        completes=True,
        conventions=CONVENTIONS,
        upstream="HumanEval/{}",
        stop=STOP,
    )
