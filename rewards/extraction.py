"""From what a model said to the program that it meant. Training and evaluation ask here, so that they never disagree."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*?)[ \t\r]*$", re.MULTILINE)
_PYTHON = {"python", "py", "python3", "python 3"}


def extract_code(text: str) -> str:
    """The last fenced block marked as Python, else the last unmarked one, else what follows a fence that was never closed, else the text itself.

    Any text is taken: 10 MB (time is linear), lone surrogates, a block inside a block, a prompt that is repeated before the answer.
    """
    marked, unmarked = None, None
    opened: tuple[str, str, int] | None = None  # fence, language, where its content begins
    for found in _FENCE.finditer(text):
        fence, language = found[1], found[2].strip().lower()
        if opened and not language and fence.startswith(opened[0]):
            content = text[opened[2] : found.start()]
            if opened[1] in _PYTHON:
                marked = content
            elif not opened[1] and content.strip():
                unmarked = content
            opened = None
        elif opened is None or language:  # a language begins a new block, whatever is open
            opened = (fence, language, min(found.end() + 1, len(text)))
    if (closed := marked if marked is not None else unmarked) is not None:
        return closed
    if opened and (opened[1] in _PYTHON or not opened[1]):
        return text[opened[2] :]
    return text


TAIL, LONGEST = (
    20_000,
    300,
)  # characters: where a final answer is looked for, and how long it may be
_SAID = re.compile(
    r"(?:####|(?:^|[\n.!?])[ \t*]*+(?:so |thus |therefore,? )?(?:the )?(?:final )?answer\b(?: is\b)?[ \t*]*+[:=]?)[ \t*]*+(\S[^\n]*)",
    re.IGNORECASE,
)  # possessive: time stays linear


def extract_answer(text: str) -> str:
    """The final answer of a text: the last `\\boxed{...}`, else what the last line "Answer: ..." or "#### ..." says, else a text of one short line.

    "" where there is none, or it is longer than LONGEST. One answer alone is taken, the last: naming several wins nothing.
    """
    text = text[-TAIL:]
    if (begin := text.rfind("\\boxed{")) >= 0:
        said = _braced(text, begin + len("\\boxed{"))
        return said if len(said) <= LONGEST else ""
    said = ""
    for found in _SAID.finditer(text):
        said = found[1]
    said = said.strip().strip("*").removesuffix(".").strip() if said else text.strip()
    return said if len(said) <= LONGEST and "\n" not in said else ""


def _braced(text: str, begin: int) -> str:
    """What stands up to the brace that closes; "" where none does."""
    depth = 1
    for at in range(begin, min(len(text), begin + 10_000)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[begin:at].strip()
    return ""
