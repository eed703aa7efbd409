"""Read rows of files for fine-tuning as a statement and an answer.

Forms: prompt and completion, Alpaca (`instruction`, `input`, `output`), question and answer, and
chats (`messages` with `role` and `content`, or `conversations` with `from` and `value`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from problems.reading.input_output import python_3
from problems.reading.prose import program
from problems.reading.source import Row

# names of the statement, and of the answer to it
NAMES = (
    (("prompt",), ("completion", "response", "answer")),
    (("instruction", "input"), ("output", "response", "completion")),
    (("question",), ("answer", "response", "solution")),
)
CHATS = (("messages", "role", "content"), ("conversations", "from", "value"))
USERS, MODELS = ("user", "human"), ("assistant", "gpt")


def pair_of(row: Row) -> dict[str, Any] | None:
    """Return the row with `statement` and `solutions`, or None if it has none of the forms.

    The answer's program is its solution if it is Python; every other key is kept.
    """
    for chat, role, content in CHATS:
        said = [_said(row.get(chat), role, content, roles) for roles in (USERS, MODELS)]
        if pair := _pair(row, *said):
            return pair
    for statement, answers in NAMES:
        answer = next((row[key] for key in answers if isinstance(row.get(key), str)), None)
        parts = [row[key] for key in statement if isinstance(row.get(key), str) and row[key]]
        if answer is not None and isinstance(row.get(statement[0]), str):
            return _pair(row, "\n\n".join(parts), answer)
    return None


def _pair(row: Row, statement: str, answer: str) -> dict[str, Any] | None:
    solutions = list(python_3([program(answer)])) if answer.strip() else []
    return {**row, "statement": statement, "solutions": solutions} if statement.strip() else None


def _said(chat: Any, role: str, content: str, roles: tuple[str, ...]) -> str:
    """Return what these roles say, joined; an empty text for a value that is no chat."""
    chat = chat if isinstance(chat, list) else []
    said = [each for each in chat if isinstance(each, Mapping) and each.get(role) in roles]
    return "\n\n".join(each[content] for each in said if isinstance(each.get(content), str))
