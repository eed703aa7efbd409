"""What the tests say. In: the sandbox's report. Out: a value in [-1, 1], or None when the judge failed."""

from __future__ import annotations

from sandbox.protocol import Report, Verdict


def correctness(report: Report, *, dense: float, visible: int = 0) -> float | None:
    """dense 0: 1 where every test passes, else -1. dense 1: the share of hidden tests passed, from -1 (none) to 1 (all). Between: so much of each.

    visible: how many tests, from the front, the answer could read in its prompt; where all are, they count.
    """
    if report.verdict is Verdict.INFRA:
        return None
    solved = report.verdict is Verdict.AC
    binary = 1.0 if solved else -1.0
    if solved or dense == 0.0:
        return binary
    counted = report.tests[visible:] or report.tests
    # a program that passed each test and yet is not accepted broke a limit, or failed a visible test: never worth a solution
    passed = min(sum(test.verdict is Verdict.AC for test in counted), len(counted) - 1)
    return (1.0 - dense) * binary + dense * (2.0 * passed / len(counted) - 1.0)
