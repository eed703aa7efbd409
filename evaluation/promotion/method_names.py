"""The names of tests and intervals in texts. The tests themselves: evaluation/statistics/.

In: a comparison as plain JSON, a rate. Out: a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.statistics.paired import TestName

TESTS: dict[TestName, str] = {
    "mcnemar": "exact McNemar test",
    "sign_flips": "exact sign-flip test over tasks",
    "cluster_sign_flips": "exact sign-flip test over {clusters} clusters of tasks",
}
INTERVALS: dict[TestName, str] = {
    "mcnemar": "Tango's score interval",
    "sign_flips": "Gaffke's interval over tasks",
    "cluster_sign_flips": "Gaffke's interval over {clusters} clusters of tasks",
}


def name_of_test(comparison: Mapping[str, Any]) -> str:
    """Return the name of the test of a recorded comparison."""
    return TESTS[comparison["test"]].format(clusters=comparison.get("clusters"))


def name_of_interval(comparison: Mapping[str, Any]) -> str:
    """Return the name of the interval of a recorded comparison's difference."""
    return INTERVALS[comparison["test"]].format(clusters=comparison.get("clusters"))


def name_of_rate_interval(rate: Mapping[str, Any]) -> str:
    """Return the name of the interval of a rate."""
    if rate.get("clusters"):
        return f"Gaffke's interval over {rate['clusters']} clusters of tasks"
    if rate.get("solved") is None:
        return "Gaffke's interval over tasks"
    return "Wilson's interval, with that of Clopper and Pearson near 0 and 1"


def score_words(k: int, completions: int, most: int | None = None) -> str:
    """Return the score that is compared: "pass@5, 10 completions per task"."""
    count = f"{completions}" if most in (None, completions) else f"{completions} to {most}"
    return f"pass@{k}, {count} completion{'' if count == '1' else 's'} per task"
