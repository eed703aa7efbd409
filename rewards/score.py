"""The result of a reward: a value, or no score at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from problems.schema import Problem
from rewards.judging import Judged
from rewards.security import denied_calls
from sandbox.protocol import TestResult, Verdict


@dataclass(frozen=True)
class Score:
    """The score of one completion.

    `value` is in [-1, 1], or None when judging failed: such a sample is left out of the advantage,
    it is never a zero.
    """

    value: float | None
    verdict: Verdict
    components: dict[str, float] = field(default_factory=dict)
    passed: int = 0
    total: int = 0
    gave: dict[str, float] = field(default_factory=dict)  # per component; these sum to `value`
    visible: float | None = None  # share of the visible tests passed; None: there are none
    hidden: float | None = None  # share of the hidden tests passed
    denied: int | None = None  # refused system calls; None: the sandbox cannot count them
    shared: bool = False  # the program could have influenced (forged) the verdict
    unpaid: float = 0.0  # what the value would gain if `RewardConfig.shared` were on

    def __post_init__(self) -> None:
        if self.value is not None and not -1.0 <= self.value <= 1.0:
            raise ValueError(f"`value` must be in [-1, 1], got {self.value}")
        if (self.value is None) != (self.verdict is Verdict.INFRA):
            raise ValueError(
                f"`value` must be None exactly when the verdict is INFRA, got {self.value} with "
                f"verdict {self.verdict}"
            )

    @property
    def solved(self) -> bool:
        return self.verdict is Verdict.AC


class HackingFacts(TypedDict):
    """Fields of a score for the watch on reward hacking (rewards/watch.py)."""

    visible: float | None
    hidden: float | None
    denied: int | None
    shared: bool


def hacking_facts(judged: Judged) -> HackingFacts:
    tests, visible = (
        judged.report.tests,
        judged.task.visible_tests if isinstance(judged.task, Problem) else 0,
    )
    return HackingFacts(
        visible=_share(tests[:visible]),
        hidden=_share(tests[visible:]),
        denied=denied_calls(judged.report),
        shared=judged.report.trust == "shared",
    )


def _share(tests: tuple[TestResult, ...]) -> float | None:
    return sum(test.verdict is Verdict.AC for test in tests) / len(tests) if tests else None
