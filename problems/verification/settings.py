"""The settings of verification."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveInt

from artifacts.code_hash import hash_modules
from artifacts.hashing import hash_data
from artifacts.section import Section

CODE = "problems.verification.verification"  # the rules, with all that they import


class Verification(Section):
    """How strictly tests are checked before a problem may be used for training."""

    mutants: NonNegativeInt = 16
    """Mutants of a problem's first solution that its tests should reject; as few as 4 for a slow
    solution and for composed problems. Demonstrations have none, because their tests judge no
    completion.
    """
    threshold: float = Field(0.5, ge=0, le=1)
    """Minimum share of the mutants that the tests must reject. Problems for training below it
    are removed, except composed problems.
    """
    repeats: PositiveInt = 2
    """Least number of runs of each solution, each with other seeds (random, hash, clock, time
    zone). A solution that uses sets, a clock or draws runs up to 25 times, unless this is 1. A
    problem whose verdict flickers is removed. Composed problems, which are our own, run once.
    """

    agreement: PositiveInt = 2
    """Least number of a model's samples that must pass the tests of a problem without a reference
    solution. Samples that differ only in layout count once.
    """

    @property
    def how(self) -> str:
        """Identifies these rules in the journal."""
        code = hash_modules((CODE,), ("problems", "sandbox"))
        return hash_data({"code": code} | self.model_dump(mode="json"))[:12]
