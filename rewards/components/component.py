"""The interface of a reward component.

In: a judged program. Out: a value in [-1, 1], or None where the component measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from problems.schema import Problem
from rewards.extraction import extract_code
from rewards.lint import Findings
from rewards.preference import Preferences
from sandbox.protocol import Report


@dataclass(frozen=True)
class RewardedProgram:
    """A judged program, with everything that a component may measure."""

    task: Problem
    completion: str
    report: Report
    dense: float = 0.0  # how much of correctness is dense at this training step
    findings: Findings | None = None  # of the linter; None: not linted, or it cannot read the code
    preferences: Preferences | None = None  # people's choices; None: none were given

    @cached_property
    def code(self) -> str:
        """The program's text."""
        return extract_code(self.completion, self.task.entry_point, self.task.language)


@dataclass(frozen=True)
class Component:
    """One component of the reward, with the default of its weight."""

    about: str  # description of `reward.weights.NAME`
    value: Callable[[RewardedProgram], float | None]  # None: this program gets no weight here
    weight: float = 0.0
    order: int = 10  # of two components with equal weights, the lower one counts first
    always: bool = False  # measured even without a weight, for the record
    timed: bool = False  # made of measured time: two runs may differ
    linted: bool = False  # reads `RewardedProgram.findings` of accepted programs
