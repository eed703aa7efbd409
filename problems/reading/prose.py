"""Read statements and programs that datasets wrap in a chat, in Markdown or in instructions."""

from __future__ import annotations

import re
from typing import Any

from problems.columns import ProblemError
from problems.prompt import TURNS, messages
from problems.reading.source import Row, text
from sandbox.reading import shown

_FENCED = re.compile(r"```[ \t]*(\w*)[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_PYTHON = ("python", "py", "python3")
# Instructions around the statement, each as its dataset writes it: SYNTHETIC-1, rLLM's LeetCode
# rows, Eurus-2.
_AROUND = re.compile(
    r"^\s*Solve the following coding problem using the programming language python:\s*"
    r"|^\s*Please solve the programming task below using a self-contained code snippet in a "
    r"markdown code block\.\s*"
    r"|\s*Now solve the problem and return the code\.\s*$"
    r"|\s*Write Python code to solve the problem\. Present the code in\s*"
    r"```python\s*Your code\s*```\s*at the end\.\s*$",
    re.IGNORECASE,
)


def statement(row: Row, key: str, where: str) -> str:
    """Return the statement under `key`: a text, or the user's messages of a chat.

    The dataset's instructions around it are left out. Raises ProblemError naming the key.
    """
    if not isinstance(row.get(key), list):
        return _AROUND.sub("", text(row, key, where)).strip()
    parts = [message["content"] for message in messages(row[key]) if message["role"] == "user"]
    if not parts:
        raise ProblemError(
            f"key {key!r} is {shown(row[key])}", "expected messages, one of them a user's", where
        )
    return _AROUND.sub("", "\n\n".join(parts).replace("\r\n", "\n")).strip()


def chat_turns(chat: Any) -> dict[str, Any]:
    """Return the messages of a chat up to the last user's, under TURNS, if a model's is among them;
    else nothing.
    """
    turns = messages(chat)
    while turns and turns[-1]["role"] != "user":
        turns.pop()
    if all(turn["role"] != "assistant" for turn in turns):
        return {}
    last = _AROUND.sub("", turns[-1]["content"].replace("\r\n", "\n")).strip()
    return {TURNS: [*turns[:-1], {"role": "user", "content": last}]}


def program(written: str) -> str:
    """Return the last block that is marked as Python, else the last block, else the text."""
    blocks = _FENCED.findall(written.replace("\r\n", "\n"))
    marked = [code for language, code in blocks if language.lower() in _PYTHON]
    return str((marked or [code for _, code in blocks] or [written])[-1])


def programs(value: Any) -> list[str]:
    """Return the different programs of a text or of a list of texts; anything else gives none."""
    written = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    found = (program(item) for item in written if isinstance(item, str) and item.strip())
    return list(dict.fromkeys(code for code in found if code.strip()))
