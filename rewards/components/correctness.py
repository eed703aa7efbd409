"""Reward for the tests.

In: the sandbox's report. Out: a value in [-1, 1], or None when judging failed.
"""

from __future__ import annotations

from rewards.components.component import Component
from sandbox.protocol import Report, Verdict


def correctness(report: Report, *, dense: float, visible: int = 0) -> float | None:
    """Return binary correctness (dense 0), the share of hidden tests (dense 1), or a mix.

    Binary is 1 where every test passes, else -1. The share of hidden tests passed ranges from -1
    (none) to 1 (all).
    visible: how many tests, from the front, were readable in the prompt; if all were, they count.
    """
    if report.verdict is Verdict.INFRA:
        return None
    solved = report.verdict is Verdict.AC
    binary = 1.0 if solved else -1.0
    if solved or dense == 0.0:
        return binary
    counted = report.tests[visible:] or report.tests
    # A program that passed each of these tests but was not accepted broke a limit or failed a
    # visible test: it never gets as much as a solution.
    passed = min(sum(test.verdict is Verdict.AC for test in counted), len(counted) - 1)
    return (1.0 - dense) * binary + dense * (2.0 * passed / len(counted) - 1.0)


COMPONENT = Component(
    "Whether the tests pass.",
    lambda program: correctness(
        program.report, dense=program.dense, visible=program.task.visible_tests
    ),
    weight=0.9,
    order=1,
)
