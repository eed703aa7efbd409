"""The embedded family's two benchmarks: validation picks the checkpoint of a run; a fresh held-out
draw decides at each gate.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.sampling import Sampling
from problems.schema import Problem

SAMPLING = Sampling(n=1, temperature=0.0, max_new_tokens=80)


def answering(tokens: int) -> Sampling:
    """Return greedy settings with training's token limit, so that curve and scorecard agree."""
    return SAMPLING.model_copy(update={"max_new_tokens": tokens})


def heldout(problems: Sequence[Problem], sampling: Sampling = SAMPLING) -> Benchmark:
    """Return the benchmark of compositions that training never saw."""
    return from_problems(
        "heldout",
        problems,
        sampling,
        conventions="greedy; compositions of operations that training never saw",
    )


def regression(problems: Sequence[Problem], sampling: Sampling = SAMPLING) -> Benchmark:
    """Return the benchmark of held-out tasks that one champion solved and a later one lost."""
    return from_problems(
        "regression",
        problems,
        sampling,
        conventions="greedy; held-out tasks that a champion solved and a later one lost",
    )


def validation(problems: Sequence[Problem], sampling: Sampling = SAMPLING) -> Benchmark:
    """Return the problems of the family's validation part. They are neither trained nor gated on,
    so a curve may be tuned on them.
    """
    problems = [
        problem
        for problem in problems
        if problem.split == "validation" and problem.source == "embedded"
    ]
    return from_problems(
        "validation",
        problems,
        sampling,
        gated=False,
        conventions="greedy; picks the checkpoint, decides nothing else",
    )
