"""Statements that accept any of several answers: "If there are several paths, print any of them".

A program that gives another right answer than the tests expect would fail them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from artifacts.parsing import parse
from problems.reading.any_order import says_any_order
from problems.reading.input_output import AS_UPSTREAM
from problems.reading.stated import sentences
from problems.schema import Problem

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
_AS_RIGHT = r"(?:as\W+)?(?:an?\W+)?"
_ACCEPTED = r"(?:accepted|acceptable|correct|fine|ok|sufficient|suffice|satisfied)"
_OWN = r"(?<!will )(?<!would )(?<!cannot )(?<!not )(?<!n't )(?<!never )\b"  # not "he will choose"
_NO_STEP = r"(?=\W*\Z|[,;(])"  # not "choose any of them and remove it"
# "If there are several such paths, choose one arbitrarily", "if two cities tie, name any of them":
# a condition on the number of things of any kind, and a choice that is not narrowed.
_FREE_CHOICE = re.compile(
    rf"\b(?:if|when(?:ever)?|where|should|in (?:the )?case)\b.{{0,60}}?(?:{_SEVERAL}|\bties?\b)"
    rf"(?P<things>.*?)(?:{_OWN}(?:(?P<step>choose|pick|select|use|take)|give|name|show|find|build|"
    r"construct|produce|write|print|output|return|report|submit|provide)\W+"
    r"(?:(?:any|an arbitrary|either)(?:\W+one)?(?:\W+of\W+(?:them|these|those))?|"
    r"(?:(?:just|only|any|exactly)\W+)?one(?:\W+of\W+(?:them|these|those))?\W+"
    r"(?:arbitrarily|at random|randomly|freely|at will|as you (?:like|wish|want))|"
    r"(?:just|only)\W+one(?:\W+of\W+(?:them|these|those))?|"
    rf"(?:whichever|whatever)\b[^,;.]{{0,20}}){_NO_STEP}|"
    rf"choice is (?:yours|free|arbitrary){_NO_STEP}|\bup to you\b|"
    r"(?:does not|doesn't) matter which\b)",
    re.IGNORECASE | re.DOTALL,
)
_THING = re.compile(r"[a-z]{4,}", re.IGNORECASE)
_WANTED = (
    rf"(?:{_PRINT}|{_CHOOSE}|\b(?:construct|produce|determine)\b)(?:(?!number of|count)[^.])*\b"
)
# "Give any such string", "construct an arbitrary array with this property".
_SUCH = re.compile(
    rf"{_OWN}(?:give|find|show|name|build|construct|produce|generate|draw|exhibit|make|write)"
    r"(?:\W+(?:down|out))?\W+(?:me\W+)?(?:any|an arbitrary|one)\W+"
    rf"(?:(?:such|{_VALID})\W+(?:\w+\W+){{0,2}}\w+{_NO_STEP}|(?:\w+\W+){{1,3}}?"
    r"(?:(?:that|which)\W+(?:satisf\w+|meets?\b|fulfil\w*)|satisfying|meeting|fulfilling|"
    r"with (?:this|these|the (?:given|required|above)) (?:propert\w+|condition\w*)))|"
    rf"{_SEVERAL}\W+{_VALID}\W+{_ANSWERS}\b.*\byours?\b.*\b(?:differ|match|be different)\b",
    re.IGNORECASE | re.DOTALL,
)
# "If there are several solutions, print any of them", "return any permutation", "any of them is
# accepted", "choose any of the valid orderings", "ties may be broken arbitrarily".
_ANY_ANSWER = re.compile(
    rf"\b(?:if|when|in case)\b.{{0,40}}?{_SEVERAL}(?:\W+\w+){{0,5}}?\W+(?:{_ANSWERS}|{_VALID})\b.*"
    rf"{_ANY}(?:\s+{_ONE}\b|\s*(?:[,;()]|\Z))|"
    rf"\b(?:if|when|in case)\b.{{0,40}}?{_SEVERAL}.*{_PRINT}\W+(?:{_ANY}|one of (?:them|these)\b)|"
    rf"(?:{_PRINT}|\bfind out(?= any\b)|\btask is to find\b)\W+{_FILL}{_ANY}|"
    rf"{_CHOOSE}\W+(?:{_ANY}|an\b)\W+(?:(?:one|of|the|these)\W+)*{_VALID}\b(?!\W+{_MOVES})|"
    rf"{_ANY}(?:\W+\w+){{0,4}}\W+(?:(?:is|are|be|will|would|counts?)\W+(?:be\W+)?(?:considered\W+)?"
    rf"{_AS_RIGHT}{_ACCEPTED}|(?:may|can) be (?:printed|returned))\b|"
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
_SAME = re.compile(r"(?:is_)?(?:same|equal)")  # functions of tests that compare two values
_YES_OR_NO = ("yes", "no", "true", "false", "possible", "impossible", "-1")


def accepts_any(sentence: str, statement: str = "") -> bool:
    """Return whether a sentence leaves the choice between several answers free.

    statement: it tells an answer that is chosen ("print the path") from a step ("if several piles
    are largest, choose any").
    """
    if _ANY_ANSWER.search(sentence) or _SUCH.search(sentence):
        return True
    if not (choice := _FREE_CHOICE.search(sentence)):
        return False
    things = choice["things"].lower().rpartition(",")[0]
    words = [word.removesuffix("s") for word in _THING.findall(things)]
    rest = statement.replace(sentence, "")
    return (
        not choice["step"]
        or not words
        or re.search(r"\bsuch\b", things) is not None
        or re.search(r"\byou\b", choice["things"], re.IGNORECASE) is not None
        or any(re.search(_WANTED + word, rest, re.IGNORECASE) for word in words[:3])
    )


def any_answer(problem: Problem) -> str:
    """Return the sentence by which a statement accepts any of several answers, if the tests compare
    with one of them; else "". Such tests fail right programs.
    """
    if problem.checker not in (None, *AS_UPSTREAM):
        return ""
    ordered = problem.compare not in ("unordered", "set")
    for sentence in sentences(problem):
        one = accepts_any(sentence, problem.statement)
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
