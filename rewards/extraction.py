"""Extract the program or final answer from a completion.

Training and evaluation both use this module, so that they never disagree.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*?)[ \t\r]*$", re.MULTILINE)
_PYTHON = {"python", "py", "python3", "python 3"}


def extract_code(text: str) -> str:
    """Return the last fenced block that is marked as Python.

    Otherwise the last unmarked block, else the text after a fence that was never closed, else the
    text itself.
    Accepts any text: 10 MB (time is linear), lone surrogates, a block inside a block, a prompt
    repeated before the answer.
    """
    marked, unmarked = None, None
    opened: tuple[str, str, int] | None = None  # fence, language, offset of the content
    for match in _FENCE.finditer(text):
        fence, language = match[1], match[2].strip().lower()
        if opened and not language and fence.startswith(opened[0]):
            content = text[opened[2] : match.start()]
            if opened[1] in _PYTHON:
                marked = content
            elif not opened[1] and content.strip():
                unmarked = content
            opened = None
        elif opened is None or language:  # a language begins a new block, even inside an open one
            opened = (fence, language, min(match.end() + 1, len(text)))
    if (closed := marked if marked is not None else unmarked) is not None:
        return closed
    if opened and (opened[1] in _PYTHON or not opened[1]):
        return text[opened[2] :]
    return text


# Characters: where a final answer is searched, and how long it may be.
TAIL, LONGEST = 20_000, 300
_ANSWER = re.compile(
    r"(?:####|(?:^|[\n.!?])[ \t*]*+(?:so |thus |therefore,? )?(?:the )?(?:final )?"
    r"answer\b(?: is\b)?[ \t*]*+[:=]?)[ \t*]*+(\S[^\n]*)",
    re.IGNORECASE,
)  # possessive quantifiers keep the time linear


def extract_answer(text: str) -> str:
    """Return the final answer of a text: the last `\\boxed{...}`.

    Otherwise the text of the last line "Answer: ..." or "#### ...", else a text of one short line.
    "" where there is none, or it is longer than LONGEST. Only the last answer is taken, so naming
    several gains nothing.
    """
    text = text[-TAIL:]
    if (begin := text.rfind("\\boxed{")) >= 0:
        answer = _braced(text, begin + len("\\boxed{"))
        return answer if len(answer) <= LONGEST else ""
    answer = ""
    for match in _ANSWER.finditer(text):
        answer = match[1]
    answer = answer.strip().strip("*").removesuffix(".").strip() if answer else text.strip()
    return answer if len(answer) <= LONGEST and "\n" not in answer else ""


def _braced(text: str, begin: int) -> str:
    """Return the text up to the closing brace; "" where there is none."""
    depth = 1
    for at in range(begin, min(len(text), begin + 10_000)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[begin:at].strip()
    return ""
