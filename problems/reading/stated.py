"""What a statement says of its answers, for sources that have no column for it."""

from __future__ import annotations

import re
from dataclasses import replace

from problems.reading.any_order import in_any_order, says_any_order
from problems.schema import Problem

# A small number: 10^-6, 10^{-6}, $10^{-6}$, 10**-6, 1e-6, 10⁻⁶, 0.000001, or "10 - 6" where the
# markup was lost.
_SMALL = re.compile(
    r"\b10\}?\s*(?:\^|\*\*)?\s*\{?\s*[-−–]\s*(?P<power>\d{1,2})\b|\b1(?:\.0)?e[-−–](?P<e>\d{1,2})\b|"
    r"\b10⁻(?P<superscript>[¹²³⁴⁵⁶⁷⁸⁹]{1,2})|\b0\.(?P<zeros>0+)1\b",
    re.IGNORECASE,
)
# More digits are as right: "with at least 6 digits after the decimal point".
_DIGITS_LEFT = re.compile(
    r"\bat least (?P<n>\d{1,2}) (?:(?:digits?|places|positions) (?:after|past|behind|right of)"
    r" the (?:decimal )?(?:point|dot|comma)|decimals?\b|decimal (?:places|digits|points))",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.](?=\d)|(?<!\n)\n(?!\n))+")
_ERROR = re.compile(
    r"\b(?:absolute|relative|error|inaccura\w+|precision|accura\w+|tolerance|within|deviat\w+|"
    r"differ\w*)\b|\bmax\W{1,4}1\b",  # |a - b| / max(1, |b|)
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"\b(?:answers?|outputs?|print\w*|results?|correct|accept\w*|checker|judge|error|inaccuracy)\b",
    re.IGNORECASE,
)
_DIGITS = str.maketrans("¹²³⁴⁵⁶⁷⁸⁹", "123456789")

_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?", re.IGNORECASE)
# "You can print each letter in any case (upper or lower)", "The checker is case-insensitive".
_ANY_CASE = re.compile(
    r"\bin\W+(?:any|either|arbitrary|upper\W+or\W+lower)\W+(?:case|register)\b(?!\W+of\b)|"
    r"\bcase\W?insensitive|\b(?:ignor\w+|regardless of|irrespective of)\W+(?:the\W+)?case\b",
    re.IGNORECASE,
)

LONG = 2_000  # characters of a sentence: data, not words


def with_stated(problem: Problem) -> Problem:
    """Return the problem with what its statement says of equal answers, as far as its style
    compares values: the tolerance, if it has none of its own, that letters may be in any case, and
    that elements may be in any order.
    """
    if any(map(says_any_order, sentences(problem))):
        problem = in_any_order(problem)
    if problem.checker is not None or "tolerance" not in problem.kind.options:
        return problem
    if problem.tolerance is None:
        problem = replace(problem, tolerance=stated_tolerance(problem.statement))
    if "loose" in problem.kind.compares and prescribes_words(problem) and _any_case(problem):
        problem = replace(problem, compare="loose")
    return problem


def prescribes_words(problem: Problem) -> bool:
    """Return whether the words that tests expect are words of the statement, such as "Yes", so that
    the case of their letters says nothing. The case of a computed text does.
    """
    words = {*_WORD.findall(problem.statement.lower())}
    return all(
        words.issuperset(_WORD.findall(token.lower()))
        for test in problem.tests
        for token in test["stdout"].split()
        if not _NUMBER.fullmatch(token)
    )


def _any_case(problem: Problem) -> bool:
    return any(
        _ANY_CASE.search(sentence) and _ANSWER.search(sentence) for sentence in sentences(problem)
    )


def sentences(problem: Problem) -> list[str]:
    """Return the sentences of the statement, without long rows of data."""
    found = map(str.strip, _SENTENCE.findall(problem.statement))
    return [sentence for sentence in found if len(sentence) <= LONG]


def stated_tolerance(statement: str) -> float | None:
    """Return the error that a statement allows in its answers, absolute or relative; None if it
    names none.

    It is a small number in a sentence about errors of answers, or the least number of decimals.
    A number in the bounds of the input does not count.
    """
    for sentence in _SENTENCE.findall(statement):
        small = _SMALL.search(sentence)
        if small and _ERROR.search(sentence) and _ANSWER.search(sentence):
            zeros = small["zeros"]
            power = small["power"] or small["e"] or (small["superscript"] or "").translate(_DIGITS)
            return float(f"1e-{len(zeros) + 1 if zeros else power}")
        if (digits := _DIGITS_LEFT.search(sentence)) and _ANSWER.search(sentence):
            return float(f"1e-{digits['n']}")
    return None
