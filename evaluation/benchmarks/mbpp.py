"""MBPP, its test tasks 11 to 510 (Austin et al. 2021, arXiv:2108.07732). Gated: none of these may be trained on."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.generation import Sampling
from problems.schema import Problem

TASKS = range(11, 511)
CONVENTIONS = "greedy, asked as a chat with one test shown, without the published three examples; test tasks 11 to 510"


def mbpp(problems: Sequence[Problem]) -> Benchmark:
    """Gated tasks outside the test range (MBPP+ has 108 of them) are kept from training, and are no part of this score."""
    tasks = [problem for problem in problems if problem.source == "mbpp" and problem.extra["task_id"] in TASKS]
    return from_problems("mbpp", tasks, Sampling(max_new_tokens=512), conventions=CONVENTIONS)
