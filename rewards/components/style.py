"""Measure how well a program reads.

In: the linter's findings and the verdict. Out: a value in [-1, 1].
Offences are counted, not divided by length: adding text to a program cannot raise its value.
"""

from __future__ import annotations

from rewards.components.component import Component, RewardedProgram
from rewards.components.format import well_formed
from rewards.lint import Findings
from sandbox.languages import PYTHON
from sandbox.protocol import Report, Verdict

SIMPLE = 10  # McCabe's own bound for a function; each point above it is an offence
HALF = 4  # offences that halve the value
NOT_ACCEPTED = -0.5


def style(report: Report, findings: Findings | None, *, formed: bool) -> float | None:
    """Accepted: its readability, in [0, 1].

    Not accepted: -0.5, so that style never replaces a solution. No program at all: -1.
    None when judging failed.
    """
    if report.verdict is Verdict.INFRA:
        return None
    if report.verdict is not Verdict.AC:
        return NOT_ACCEPTED if formed else -1.0
    return readability(findings)


def readability(findings: Findings | None) -> float:
    """Return HALF / (HALF + offences), in (0, 1].

    Return 0 for a program that the linter cannot read, or that runs a text as a program.
    """
    if findings is None or findings.runs_text:
        return 0.0
    return HALF / (HALF + findings.offences + max(0, findings.complexity - SIMPLE))


def _style(program: RewardedProgram) -> float | None:
    if program.task.language != PYTHON:
        return None  # the linter reads Python
    formed = program.report.verdict is Verdict.AC or (
        well_formed(program.task, program.code, program.report) == 1.0
    )
    return style(program.report, program.findings, formed=formed)


COMPONENT = Component(
    "For accepted programs: the linter's findings, and the complexity of the worst function.",
    _style,
    order=3,
    linted=True,
)
