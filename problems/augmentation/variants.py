"""Derive variants of verified problems, verify them, and write them to a folder.

In: verified problems. Out: the variants that passed, the strength of their tests, and the rejected
attempts with their reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from problems.augmentation.augment import augment
from problems.augmentation.draft import reason_not_parent
from problems.augmentation.settings import Augmentation
from problems.cleaning.curation import faulty
from problems.cleaning.settings import Curation
from problems.dataset.trainable import untrained
from problems.funnel import Stage, write_removed
from problems.schema import Problem, write_parquet
from problems.verification import strength
from problems.verification.settings import Verification
from problems.verification.verification import verify
from sandbox.sandbox import Runs


def write_variants(
    problems: Sequence[Problem],
    folder: Path,
    *,
    base: str,
    augmentation: Augmentation,
    curation: Curation,
    verification: Verification,
    seed: int,
    sandbox: Runs,
    journal: Path,
    on_progress: Callable[[int, int], None],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Fill the folder. Return the facts of its manifest and the isolation levels of the verdicts.

    base: the profile's base model, which decides which problems are not trained on. journal: file
    of earlier verdicts. on_progress: called with verified and all variants.
    """
    # Variants of problems that are not trained on, or are removed later, would be removed as well.
    not_trained_on = untrained(problems, base)
    candidates = (
        problem
        for problem in problems
        if problem.problem_id not in not_trained_on and not reason_not_parent(problem)
    )
    poor = faulty(candidates, curation)
    parents = [
        problem for problem in problems if problem.problem_id not in not_trained_on | poor.keys()
    ]
    augmented = augment(parents, augmentation, seed, sandbox)
    verified = verify(augmented.problems, sandbox, journal, verification, on_progress=on_progress)
    write_parquet(verified.problems, folder / "problems.parquet")
    strength.write(verified.strength, folder)
    removed = (*augmented.refused, *verified.removed)
    write_removed(removed, folder)
    came_in, kept = augmented.stage.came_in, len(verified.problems)
    not_parents = (
        Counter(augmented.not_parents)
        + Counter(poor.values())
        + Counter({"not trained on": len(not_trained_on)})
    )
    facts = {
        "attempts": came_in,
        "kept": kept,
        "not_parents": dict(sorted(not_parents.items())),
    }
    return facts | Stage("augmented", came_in, kept, removed).facts, verified.isolation
