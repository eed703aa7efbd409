"""Reduce a statement to its prose, so that statements with and without examples compare.

In: a statement: plain text, a signature with a docstring, or a program with comments. Out: the
sentences that say what to do, without signatures, doctests, example blocks and constraints.
"""

from __future__ import annotations

import re

from problems.cleaning.normalize import normalize

MIN_WORDS = 3  # with fewer left, the text is compared whole
DOCSTRING = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'', re.DOTALL)
DEFINES = re.compile(r"^\s*(?:async\s+)?def |^\s*class ", re.MULTILINE)
# What follows the sentences: a heading of examples, a doctest, the tests that must pass.
REST = re.compile(
    r"""^[ \t>*#_`]*(?:
        (?:for[ ])?(?:examples?|e\.g\.)(?:[ ]*\d+)?[ \t*_`]*(?::|$|[ ]\w+\(|\(\d)
        |constraints?[ \t*_`]*:|(?:sample|\[input/output\])\b.*:[ ]*$
        |input(?:[ ]format)?[ \t*_`]*:|>>>|assert[ (]|```
        |(?:your|the)[ ]code[ ]should[ ](?:pass|satisfy)|tests?[ ]?(?:cases?)?:)""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
# A line that shows a call and its result, or code rather than a sentence.
CALL = re.compile(r"\w+\s*\(.*\)\s*(?:==|=>|->|➞|→|#=>|=|#|returns?\b|should return\b)")
CODE = re.compile(r"^\s*(?:from\s+\S+\s+import|import\s+\w|def\s|class\s|@|return\b.*[()\[\]=])")
LEAD = re.compile(
    r"""^\s*(?:please\s+)?(?:writes?|create|implement|define|complete|design|develop|build|make)s?\s+
    (?:an?\s+|the\s+)?(?:(?:python\s*3?|simple|efficient)\s+)*
    (?:function|program|method|script|code)s?\s+(?:(?:called|named)\s+\S+\s+)?
    (?:in\s+python\s+)?(?:to|that|which|for)\b[\s:]*""",
    re.VERBOSE | re.IGNORECASE,
)
# A sentence that gives an example, to its end.
INLINE = re.compile(
    r"(?:\bfor example\b|\bexamples?\s*\d*:|\be\.g\.|\bfor instance\b)"
    r".*?(?:[.!?:](?=\s|$)|\n\n|\Z)",
    re.IGNORECASE | re.DOTALL,
)


def prose(statement: str) -> str:
    """Return the sentences of a statement in one line, without its examples.

    The statement is returned whole, if fewer than MIN_WORDS words would be left.
    """
    text = normalize(statement)
    short = " ".join(_sentences(_documentation(text)).split())
    return short if len(re.findall(r"[^\W\d_]+", short)) >= MIN_WORDS else " ".join(text.split())


def _documentation(text: str) -> str:
    """Return docstrings and comments of a program, or the text if it defines nothing."""
    if not DEFINES.search(text):
        return text
    strings: list[str] = [one or other for one, other in DOCSTRING.findall(text)]
    if any(string.strip() for string in strings):
        return [string for string in strings if string.strip()][-1]
    comments = re.findall(r"#+[ \t]*(.*)", text)
    return "\n".join(comments)


def without_lead(text: str) -> str:
    """Return a sentence without "Write a function to", which would make any two alike."""
    return LEAD.sub("", text) or text


def _sentences(text: str) -> str:
    if rest := REST.search(text):
        head = text[: rest.start()]
        if len(head.split()) >= MIN_WORDS:
            text = head
    text = "\n".join(
        line.lstrip(" \t#*")
        for line in text.splitlines()
        if not (CODE.match(line) or CALL.search(line))
    )
    head = INLINE.sub("", text)
    return head if len(head.split()) >= MIN_WORDS else text
