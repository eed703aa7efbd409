"""Why completions fail, by kind: wrong at which test, exception, limit, no program found,
truncated.

In: samples of a scorecard. Out: a `Kind` for each, and counts. A hidden test is named only by
number.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from evaluation.scorecard import Scorecard, ScoredSample
from sandbox.protocol import Report, Verdict

RAISED = re.compile(r"raised ([A-Za-z_][A-Za-z0-9_.]*)")
IN_WORDS = {
    "WA": "wrong answer",
    "RE": "raised",
    "TLE": "too slow",
    "MLE": "too much memory",
    "OLE": "too much output",
    "CE": "no Python",
    "extraction": "no program found",
    "cut": "cut by length",
    "INFRA": "no verdict",
}


class Kind(NamedTuple):
    name: str  # a key of IN_WORDS
    of: str = ""  # "test 3", "ZeroDivisionError"

    def __str__(self) -> str:
        return f"{self.name} {self.of}".strip()


class ProgramFault(NamedTuple):
    """The number of a report's first failed test, from 1, and the type of its exception; 0 and ""
    if unknown.
    """

    test: int = 0
    raised: str = ""


def fault(report: Report) -> ProgramFault:
    """Return where the program failed. Unknown if a limit ended it: the test then says little, and
    differs from run to run.
    """
    if report.verdict not in (Verdict.WA, Verdict.RE):
        return ProgramFault()
    at = next((at for at, test in enumerate(report.tests, 1) if test.verdict is not Verdict.AC), 0)
    match = RAISED.match(report.tests[at - 1].detail if at else report.detail)
    return ProgramFault(at, match[1] if match and report.verdict is Verdict.RE else "")


def kind(sample: ScoredSample, unchanged: bool = False) -> Kind | None:
    """Return the kind; None for a sample that passes. A truncated completion, or one without a
    program, has that as its reason.

    unchanged: the completion is the program, nothing was extracted; then a program with invalid
    Python is CE.
    """
    if sample.verdict == "AC":
        return None
    if sample.verdict == "INFRA":
        return Kind("INFRA")
    if sample.cut:
        return Kind("cut")
    if not sample.program.strip() or (
        sample.verdict == "CE"
        and not unchanged
        and "```" not in sample.completion
        and "~~~" not in sample.completion
    ):
        return Kind("extraction")
    if sample.verdict == "WA":
        return Kind(
            "WA", f"test {sample.failed_test}" if sample.failed_test else _first_failed_set(sample)
        )
    return Kind(sample.verdict, sample.raised)


def _first_failed_set(sample: ScoredSample) -> str:
    """Return the first set of tests that fails, if there are several, such as "plus"."""
    return (
        next((name for name, passed in sample.sets.items() if not passed), "")
        if len(sample.sets) > 1
        else ""
    )


def kinds(card: Scorecard) -> list[tuple[ScoredSample, Kind]]:
    """Return the failing samples. Completions of a file were judged unchanged."""
    unchanged = card.origin is not None and bool(card.origin.completions)
    return [(sample, each) for sample in card.samples if (each := kind(sample, unchanged))]


def rows(card: Scorecard, most: int = 8) -> list[tuple[str, str, int, str]]:
    """Return (kind, in words, count, details), the most frequent first; details: tests by number,
    exceptions by type.
    """
    counts: dict[str, Counter[str]] = {}
    for each, count in Counter(each for _, each in kinds(card)).items():
        counts.setdefault(each.name, Counter())[each.of] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    return [(name, IN_WORDS.get(name, name), of.total(), _listed(of, most)) for name, of in ordered]


def failures(
    card: Scorecard, kind_name: str = "", task: str = ""
) -> list[tuple[ScoredSample, Kind]]:
    """Return the failing samples. kind_name: a kind (RE), or one with details (RE
    ZeroDivisionError); task: an id, or its end after a slash.
    """
    tasks = {
        sample.task_id
        for sample in card.samples
        if not task or sample.task_id == task or sample.task_id.endswith(f"/{task}")
    }
    failing = [(sample, each) for sample, each in kinds(card) if sample.task_id in tasks]
    return [
        (sample, each)
        for sample, each in failing
        if kind_name.lower() in ("", each.name.lower(), str(each).lower())
    ]


def _listed(of: Counter[str], most: int) -> str:
    named = [(name, count) for name, count in of.most_common() if name]
    more = f", {len(named) - most} more" if len(named) > most else ""
    return ", ".join(f"{name}: {count}" for name, count in named[:most]) + more
