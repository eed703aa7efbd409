"""The benchmarks that come with the training's own data: validation picks the checkpoint of a run,
held-out problems decide at the gate. For a model made from scratch both are of the embedded family,
and each gate gets a fresh draw; a named base has those of its sources.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.sampling import Sampling
from problems.schema import Problem

EMBEDDED = "embedded"  # the family's source
NO_HELDOUT = "no source has problems of the split `heldout`"
SAMPLING = Sampling(n=1, temperature=0.0, max_new_tokens=80)


def answering(tokens: int) -> Sampling:
    """Return greedy settings with training's token limit, so that curve and scorecard agree."""
    return SAMPLING.model_copy(update={"max_new_tokens": tokens})


def heldout(problems: Sequence[Problem], sampling: Sampling = SAMPLING) -> Benchmark:
    """Return the benchmark of problems that training never saw."""
    embedded = all(problem.source == EMBEDDED for problem in problems)
    which = (
        "functions that no training problem computes, in any order or wording"
        if embedded
        else "problems of the split heldout, that training never saw"
    )
    return from_problems("heldout", problems, sampling, conventions=f"greedy; {which}")


def own_heldout(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems of the split `heldout`; tasks of published benchmarks do not count."""
    return [problem for problem in problems if problem.split == "heldout" and not problem.gated]


def regression(problems: Sequence[Problem], sampling: Sampling = SAMPLING) -> Benchmark:
    """Return the benchmark of held-out tasks that one champion solved and a later one lost."""
    return from_problems(
        "regression",
        problems,
        sampling,
        conventions="greedy; held-out tasks that a champion solved and a later one lost",
    )


def validation(problems: Sequence[Problem], sampling: Sampling = SAMPLING) -> Benchmark:
    """Return the validation problems: those of the embedded family if there are any, else all. They
    are neither trained nor gated on, so a curve may be tuned on them.
    """
    own = [each for each in problems if each.split == "validation" and not each.gated]
    embedded = [problem for problem in own if problem.source == EMBEDDED]
    return from_problems(
        "validation",
        embedded or own,
        sampling,
        gated=False,
        conventions="greedy; picks the checkpoint, decides nothing else",
    )
