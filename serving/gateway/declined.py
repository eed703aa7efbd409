"""Whether a model declined to answer: an empty answer, a refusal in words, or no code where code
was asked for.

In: the text of an answer, and its request. Out: a boolean for the guardrail `refusals`. The rules
are few and read the beginning of a text only: they compare two versions on the same traffic, so a
rare mistake hits both alike.
"""

from __future__ import annotations

import ast
import re

from serving.completion import Chat

MAX_READ = 4000  # characters of an answer that are read
OPENING = 300  # characters in which a refusal begins

_CODE = re.compile(
    r"```|~~~"
    r"|^[ \t]*(?:def|class|async|lambda|return|yield|raise|import|from|for|while|if|elif|else|try"
    r"|except|with|assert|print|pass|break|continue|del|global|#include|public|private|static"
    r"|const|let|var|function|fn|func|int|void|using|SELECT)\b[^\n]*[(:;={\[]"
    r"|^[ \t]*(?:return|import|from|assert|raise|yield|pass|break|continue|else:)\b"
    r"|^[ \t]*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|echo)\b|^#!/|^[ \t]*<(?!think)[a-zA-Z!]"
    r"|^[ \t]*[A-Za-z_][\w.\[\]]*(?:, *\w+)*[ \t]*[-+*/%&|^]?=[^=\n]"
    r"|^[ \t]*[\w.]+\([^\n]*\)[ \t]*$|[;{}][ \t]*$|^[ \t]*@\w",
    re.MULTILINE,
)
_CANNOT = (
    r"(?:cannot|can\W?t|can not|could not|couldn\W?t|will not|won\W?t|would not|wouldn\W?t"
    r"|(?:am|are|\W?m|\W?re) (?:not able|unable|not allowed|not permitted)(?: to)?)"
)
_DO = (
    r"(?:help|assist|answer|provide|write|generate|create|complete|fulfil|fulfill|comply|do that"
    r"|do this|solve|respond|discuss|support|share|give|produce|implement|process)"
)
_DECLINES = re.compile(
    rf"\b(?:I|we)(?: \w+)?\s*{_CANNOT}(?:\s+\w+){{0,2}}?\s+{_DO}\b"
    r"|\b(?:I|we)\s+(?:(?:must|have to|need to)\s+)?(?:decline|refuse)\b"
    r"|\bas an? (?:AI|(?:large )?language model)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\b(?:write|implement|complete|define|create|fix|code|program)\b[^.?!\n]{0,80}"
    r"\b(?:function|program|class|method|script|code|solution)\b"
    r"|\bsolve\(|^[ \t]*(?:def|class) \w+",
    re.IGNORECASE | re.MULTILINE,
)
_ASKS_ABOUT = re.compile(
    r"\b(?:explain|describe|summari[sz]e|review|why|(?:what|how) (?:does|do|is|are))\b",
    re.IGNORECASE,
)


def declined(text: str, code_was_asked: bool) -> bool:
    """Return whether an answer is a refusal."""
    text = text[:MAX_READ]
    if not text.strip():
        return True
    whole = len(text) < MAX_READ  # the code of a long answer may come later, after the reasoning
    suspicious = (code_was_asked and whole) or _DECLINES.search(text[:OPENING])
    return bool(suspicious) and not has_code(text)


def has_code(text: str) -> bool:
    """Return whether a text has a fenced block, a line that looks like code, or is an expression of
    Python other than a name.
    """
    if _CODE.search(text):
        return True
    try:
        [line] = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Name))


def asks_for_code(chat: Chat | str) -> bool:
    """Return whether a request, by its last message, asks for a program. A tool's result does not,
    nor does a question about code.
    """
    if isinstance(chat, str):
        return bool(_ASKS.search(chat[-MAX_READ:]))
    last = str(chat[-1].get("content", ""))[-MAX_READ:]
    asks = chat[-1].get("role") == "user" and _ASKS.search(last)
    return bool(asks and not _ASKS_ABOUT.search(last))
