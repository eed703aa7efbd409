"""What a statement says of its answers, for sources that have no column for it."""

from __future__ import annotations

import re
from dataclasses import replace

from problems.schema import Problem

# A small number: 10^-6, 10^{-6}, $10^{-6}$, 10**-6, 1e-6, 10⁻⁶, 0.000001, or "10 - 6" where the
# markup was lost.
_SMALL = re.compile(
    r"\b10\}?\s*(?:\^|\*\*)?\s*\{?\s*[-−–]\s*(?P<power>\d{1,2})\b|\b1(?:\.0)?e[-−–](?P<e>\d{1,2})\b|"
    r"\b10⁻(?P<superscript>[¹²³⁴⁵⁶⁷⁸⁹]{1,2})|\b0\.(?P<zeros>0+)1\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.](?=\d)|(?<!\n)\n(?!\n))+")
_ERROR = re.compile(
    r"\b(?:absolute|relative|error|inaccura\w+|precision|accura\w+|tolerance|within|deviat\w+|"
    r"differ\w*)\b",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"\b(?:answers?|outputs?|print\w*|results?|correct|accept\w*|checker|judge|error|inaccuracy)\b",
    re.IGNORECASE,
)
_DIGITS = str.maketrans("¹²³⁴⁵⁶⁷⁸⁹", "123456789")


def with_stated_tolerance(problem: Problem) -> Problem:
    """Return the problem with the tolerance that its statement names, if it has none of its own and
    its style compares values.
    """
    compared = "tolerance" in problem.kind.options and problem.checker is None
    if not compared or problem.tolerance is not None:
        return problem
    return replace(problem, tolerance=stated_tolerance(problem.statement))


def stated_tolerance(statement: str) -> float | None:
    """Return the error that a statement allows in its answers, absolute or relative; None if it
    names none.

    It is a small number in a sentence about errors of answers; a number in the bounds of the input
    is none.
    """
    for sentence in _SENTENCE.findall(statement):
        small = _SMALL.search(sentence)
        if small and _ERROR.search(sentence) and _ANSWER.search(sentence):
            zeros = small["zeros"]
            power = small["power"] or small["e"] or (small["superscript"] or "").translate(_DIGITS)
            return float(f"1e-{len(zeros) + 1 if zeros else power}")
    return None
