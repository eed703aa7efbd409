"""What a statement says of its answers, for sources that have no column for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from artifacts.parsing import parse
from problems.reading.any_order import in_any_order, says_any_order
from problems.reading.input_output import AS_UPSTREAM
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

_NOT_ANSWERS = r"(?!\W+(?:case|order|other|more|extra|additional|further|number of)\b|\()"
_ANY = rf"\b(?:any|arbitrary|either(?= of(?! the following)| one|\W*\Z)|whichever){_NOT_ANSWERS}"
_PRINT = r"(?<!not )(?<!n't )(?<!never )\b(?:print|output|return|report|submit|provide)(?:s|ed)?\b"
_CHOOSE = r"(?<!not )(?<!n't )\b(?:choose|pick|select|find|give|use|take)\b"  # also a step
_SEVERAL = r"\b(?:multiple|several|many|different|various|more than one|two or more)\b"
_VALID = r"(?:possible|valid|correct|optimal|right|suitable|acceptable)"
_ANSWERS = r"(?:answer|solution|way|option|result|output|possibilit\w+)s?"
_MOVES = r"(?:move|step|index|position|cell|element|pair|start|operation|turn|choice)"
_ONE = rf"(?:one|of|such|answer|solution|{_VALID})"
_FILL = r"(?:(?:an?|one|single|integer|number|string|yes|and|also|just|out)\W+){0,4}"
_ACCEPTED = r"(?:accepted|acceptable|correct|fine|ok|sufficient|suffice|satisfied)"
# "If there are several solutions, print any of them", "return any permutation", "any of them is
# accepted", "choose any of the valid orderings", "ties may be broken arbitrarily".
_ANY_ANSWER = re.compile(
    rf"\b(?:if|when|in case)\b.{{0,40}}?{_SEVERAL}(?:\W+\w+){{0,5}}?\W+(?:{_ANSWERS}|{_VALID})\b.*"
    rf"{_ANY}(?:\s+{_ONE}\b|\s*(?:[,;()]|\Z))|"
    rf"\b(?:if|when|in case)\b.{{0,40}}?{_SEVERAL}.*{_PRINT}\W+(?:{_ANY}|one of (?:them|these)\b)|"
    rf"(?:{_PRINT}|\bfind out(?= any\b)|\btask is to find\b)\W+{_FILL}{_ANY}|"
    rf"{_CHOOSE}\W+(?:{_ANY}|an\b)\W+(?:(?:one|of|the|these)\W+)*{_VALID}\b(?!\W+{_MOVES})|"
    rf"{_ANY}(?:\W+\w+){{0,4}}\W+(?:(?:is|are|be|will|would)\W+(?:be\W+)?(?:considered\W+)?"
    rf"{_ACCEPTED}|(?:may|can) be (?:printed|returned))\b|"
    rf"{_ANY}(?:\W+(?:{_ONE}|the|these|them|orders?|orderings?))*\W+"
    r"(?:(?:will|would) (?:do|suffice)|suffices)\b|"
    rf"\b{_ACCEPTED} (?:by|with) {_ANY}|"
    rf"\bnot (?:\w+ )?unique\b.*(?:{_ANY}|{_PRINT}\W+one\b(?! (?:with|that|which)))|"
    rf"\ball (?:of them|{_VALID} {_ANSWERS}) (?:are|will be) (?:considered )?{_ACCEPTED}\b|"
    rf"{_PRINT}\W+one (?:of the )?{_VALID}\b(?!\W+{_MOVES})|"
    r"\bonly (?:need|have) to (?:print|output|return|find|give) one\b(?= of\b|\W*\Z)|"
    r"\bmatter which (?:one|of)\b.{0,40}\b(?:print|output|return|report|choose)|"
    r"\bties?\b.{0,40}\b(?:arbitrar\w+|any (?:way|order)\b)|\bspecial (?:judge|checker)\b",
    re.IGNORECASE | re.DOTALL,
)
LONG = 2_000  # characters of a sentence: data, not words
_SAME = re.compile(r"(?:is_)?(?:same|equal)")  # functions of tests that compare two values
_YES_OR_NO = ("yes", "no", "true", "false", "possible", "impossible", "-1")


def with_stated(problem: Problem) -> Problem:
    """Return the problem with what its statement says of equal answers, as far as its style
    compares values: the tolerance, if it has none of its own, that letters may be in any case, and
    that elements may be in any order.
    """
    if any(map(says_any_order, _sentences(problem))):
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
        _ANY_CASE.search(sentence) and _ANSWER.search(sentence) for sentence in _sentences(problem)
    )


def _sentences(problem: Problem) -> list[str]:
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


def any_answer(problem: Problem) -> str:
    """Return the sentence by which a statement accepts any of several answers, if the tests compare
    with one of them; else "". Such tests fail right programs.
    """
    if problem.checker not in (None, *AS_UPSTREAM):
        return ""
    ordered = problem.compare not in ("unordered", "set")
    for sentence in _sentences(problem):
        one = _ANY_ANSWER.search(sentence)
        if not one and not (ordered and says_any_order(sentence)):
            continue
        if any(_has_answers(value, ordered=not one) for value in _expected(problem)):
            return " ".join(sentence.split())
    return ""


def _expected(problem: Problem) -> Iterator[Any]:
    """Yield the values that tests compare with; of tests that are code, those that a call of the
    function is compared with.
    """
    names = ("candidate", problem.entry_point)
    for test in problem.tests:
        if "stdout" in test:
            yield test["stdout"].split()
        elif "expected" in test:
            yield test["expected"]
        for node in ast.walk(parse(test.get("source", ""))):
            match node:
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[value]):
                    compared = (left, value)
                case ast.Call(func=ast.Name(id=name), args=[left, value]) if _SAME.match(name):
                    compared = (left, value)
                case _:
                    continue
            match compared:
                case (ast.Call(func=ast.Name(id=name)), value) if name in names:
                    yield value


def _has_answers(value: Any, *, ordered: bool) -> bool:
    """Return whether another value could be as right: not that of a yes or no, and not the order of
    less than two elements.
    """
    if isinstance(value, ast.AST):
        try:
            value = ast.literal_eval(value)
        except (ValueError, TypeError, RecursionError):
            return True
    if isinstance(value, list | tuple):
        return len(value) > 1 or any(_has_answers(each, ordered=ordered) for each in value)
    return not (ordered or value is None or str(value).lower() in _YES_OR_NO)
