"""Find solvable problems that are not worth training on.

Reasons: too little or too much text, another language, a solution that is given away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from problems.prompt import TURNS, messages
from problems.schema import Problem

MARKUP = re.compile(r"<[^<>]*>|!?\[[^\[\]]*\]\([^()]*\)|https?://\S+")
ENGLISH = frozenset(
    re.findall(
        r"\w+",
        (
            "a an and are as be by can each for from given if in is it of on or that the then "
            "this to which will with you your"
        ),
    )
)
# Frequent in other languages in Latin letters, and in English no word.
OTHERS = (
    frozenset(
        re.findall(
            r"\w+",
            (
                "der das und ist nicht ein eine mit von zu auf den dem für le la les des une est "
                "et que dans pour qui sur avec el los las por con una del um uma os dos não com "
                "il gli di che het een van niet dat voor en och att som det inte på ve bir bu "
                "için yang dan dari untuk dengan się nie jest że na je v si este care pe và của "
                "là các ja ei hogy az egy nem "
            ),
        )
    )
    - ENGLISH
)
# Minimum characters of a code line that can give a solution away, among others and alone.
MIN_LINE, MIN_LONE_LINE = (10, 25)


def fault(
    problem: Problem, *, min_words: int, max_characters: int, english: bool
) -> tuple[str, str] | None:
    """Return reason and detail of the first fault, or None."""
    return next(_faults(problem, min_words, max_characters, english), None)


def _faults(
    problem: Problem, min_words: int, max_characters: int, english: bool
) -> Iterator[tuple[str, str]]:
    # first, because the other checks read the whole text
    if (size := len(problem.statement)) > max_characters:
        yield "statement too long", f"{size:,} characters, at most {max_characters:,}"
        return
    words = re.findall(r"[^\W_]+", MARKUP.sub(" ", problem.statement.lower()))
    if not any(map(str.isalpha, words)):
        yield "no statement", "nothing but links, pictures, numbers or signs"
    elif len(words) < min_words:
        yield "statement too short", f"{len(words)} words, at least {min_words}"
    if english and not _is_english([word for word in words if word.isalpha()]):
        yield "not in English", " ".join(words[:8])
    if problem.solutions and (longest := max(map(len, problem.solutions))) > max_characters:
        yield "solution too long", f"{longest:,} characters, at most {max_characters:,}"
    if 0 < len(problem.tests) == problem.visible_tests:
        yield (
            "the answer is given away",
            f"all {problem.visible_tests} tests may be shown: a table of them would pass",
        )
    if where := _visible_solution(problem):
        yield "the answer is given away", f"a solution stands in the {where}"


def _is_english(words: list[str]) -> bool:
    """Return whether the words look English.

    Other scripts are detected in any text, other languages in Latin letters from 20 words on: by
    their own frequent words or letters, because headings and lists of parameters have hardly any.
    """
    letters = "".join(words)
    if sum(letter > "\u024f" for letter in letters) > 0.2 * len(letters):
        return False
    if len(words) < 20 or sum(word in ENGLISH for word in words) >= 0.04 * len(words):
        return True
    foreign = sum(word in OTHERS or not word.isascii() for word in words)
    return foreign < 0.06 * len(words)


def _visible_solution(problem: Problem) -> str | None:
    """Return where nearly all lines of a solution are visible, or None.

    Checks statement, starter code, visible tests, and earlier turns of a chat.
    """
    places = {
        "statement": problem.statement,
        "starter code": problem.starter_code,
        "visible tests": "\n".join(
            str(test.get("source", "")) for test in problem.tests[: problem.visible_tests]
        ),
    }
    turns = "\n".join(turn["content"] for turn in messages(problem.extra.get(TURNS)))
    for source in problem.solutions:
        if problem.starter_code and not source.removeprefix(problem.starter_code).strip():
            return "starter code"
        lines = {line.strip() for line in source.removeprefix(problem.starter_code).splitlines()}
        telling = [
            line
            for line in lines
            if len(line) >= MIN_LINE
            and not line.startswith(("def ", "class ", "import ", "from ", "#", '"'))
        ]
        if len(telling) > 1 or any(len(line) >= MIN_LONE_LINE for line in telling):
            for where, text in places.items():
                if text and sum(line in text for line in telling) >= 0.9 * len(telling):
                    return where
            if all(line in turns for line in telling):  # an answer to improve has most of them
                return "earlier turns of the chat"
    return None
