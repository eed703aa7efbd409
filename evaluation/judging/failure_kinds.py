"""Why answers fail, by kind: wrong at which test, raised what, over which limit, no program found, cut by length.

In: samples of a scorecard. Out: a `Kind` each, and counts. A hidden test is named by its number alone.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from evaluation.scorecard import Sample, Scorecard
from sandbox.protocol import Report, Verdict

RAISED = re.compile(r"raised ([A-Za-z_][A-Za-z0-9_.]*)")
SAID = {
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
    name: str  # a key of SAID
    of: str = ""  # "test 3", "ZeroDivisionError"

    def __str__(self) -> str:
        return f"{self.name} {self.of}".strip()


class Fault(NamedTuple):
    """Of a report: the number of the first test that fails, from 1, and the type of what it raised; 0 and "" where there is none to tell."""

    test: int = 0
    raised: str = ""


def fault(report: Report) -> Fault:
    """Where a limit ended the program, the test says little, and differs from run to run: none is told."""
    if report.verdict not in (Verdict.WA, Verdict.RE):
        return Fault()
    at = next((at for at, test in enumerate(report.tests, 1) if test.verdict is not Verdict.AC), 0)
    said = RAISED.match(report.tests[at - 1].detail if at else report.detail)
    return Fault(at, said[1] if said and report.verdict is Verdict.RE else "")


def kind(sample: Sample, as_given: bool = False) -> Kind | None:
    """None for an answer that passes. What was cut, or holds no program, has that as its reason, whatever became of the rest.

    as_given: nothing was extracted, the answer is the program: what is no Python is just that.
    """
    if sample.verdict == "AC":
        return None
    if sample.verdict == "INFRA":
        return Kind("INFRA")
    if sample.cut:
        return Kind("cut")
    if not sample.program.strip() or (
        sample.verdict == "CE"
        and not as_given
        and "```" not in sample.answer
        and "~~~" not in sample.answer
    ):
        return Kind("extraction")
    if sample.verdict == "WA":
        return Kind(
            "WA", f"test {sample.failed_test}" if sample.failed_test else _first_lost(sample)
        )
    return Kind(sample.verdict, sample.raised)


def _first_lost(sample: Sample) -> str:
    """The set of tests that it does not pass, where there are several: "plus"."""
    return (
        next((name for name, passed in sample.sets.items() if not passed), "")
        if len(sample.sets) > 1
        else ""
    )


def kinds(card: Scorecard) -> list[tuple[Sample, Kind]]:
    """The answers that fail. Those of a file were judged as given."""
    as_given = card.origin is not None and bool(card.origin.completions)
    return [(sample, found) for sample in card.samples if (found := kind(sample, as_given))]


def rows(card: Scorecard, most: int = 8) -> list[tuple[str, str, int, str]]:
    """(kind, in words, answers, of which), the most frequent first; the last lists what it was: tests by number, exceptions by type."""
    found: dict[str, Counter[str]] = {}
    for each, count in Counter(each for _, each in kinds(card)).items():
        found.setdefault(each.name, Counter())[each.of] += count
    ordered = sorted(found.items(), key=lambda item: (-item[1].total(), item[0]))
    return [(name, SAID.get(name, name), of.total(), _listed(of, most)) for name, of in ordered]


def failures(card: Scorecard, wanted: str = "", task: str = "") -> list[tuple[Sample, Kind]]:
    """The answers that fail. wanted: a kind (RE), or one with what it is of (RE ZeroDivisionError); task: an id, or its end after a slash."""
    tasks = {
        sample.task_id
        for sample in card.samples
        if not task or sample.task_id == task or sample.task_id.endswith(f"/{task}")
    }
    found = [(sample, each) for sample, each in kinds(card) if sample.task_id in tasks]
    return [
        (sample, each)
        for sample, each in found
        if wanted.lower() in ("", each.name.lower(), str(each).lower())
    ]


def _listed(of: Counter[str], most: int) -> str:
    named = [(name, count) for name, count in of.most_common() if name]
    more = f", {len(named) - most} more" if len(named) > most else ""
    return ", ".join(f"{name}: {count}" for name, count in named[:most]) + more
