"""Read rows of files for fine-tuning as a statement and an answer.

Forms: prompt and completion, Alpaca (`instruction`, `input`, `output`), question and answer, and
chats (`messages` or `prompt` with `role` and `content`, or `conversations` with `from` and
`value`), whose earlier turns stay in the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from problems.prompt import TURNS, messages
from problems.reading.input_output import python_3
from problems.reading.prose import chat_turns, program
from problems.reading.source import Row

# names of the statement, and of the answer to it
NAMES = (
    (("prompt",), ("completion", "response", "answer")),
    (("instruction", "input"), ("output", "response", "completion")),
    (("question",), ("answer", "response", "solution")),
)
CHATS = (
    ("messages", "role", "content"),
    ("prompt", "role", "content"),
    ("conversations", "from", "value"),
)
ROLES = {"human": "user", "gpt": "assistant", "model": "assistant"}


def pair_of(row: Row) -> dict[str, Any] | None:
    """Return the row with `statement` and `solutions`, or None if it has none of the forms.

    The answer's program is its solution if it is Python; every other key is kept.
    """
    for key, role, content in CHATS:
        if isinstance(row.get(key), list) and (pair := _chat(row, key, role, content)):
            return pair
    for statement, answers in NAMES:
        answer = next((row[key] for key in answers if isinstance(row.get(key), str)), None)
        parts = [row[key] for key in statement if isinstance(row.get(key), str) and row[key]]
        if answer is not None and isinstance(row.get(statement[0]), str):
            return _pair(row, "\n\n".join(parts), answer)
    return None


def _pair(row: Row, statement: str, answer: str) -> dict[str, Any] | None:
    known = row.get("solutions") or []
    solutions = list(python_3([program(answer)])) if answer.strip() else known
    return {**row, "statement": statement, "solutions": solutions} if statement.strip() else None


def _chat(row: Row, key: str, role: str, content: str) -> dict[str, Any] | None:
    """Return the row of a chat: the last answer if it is a program, else all answers, are its
    solution. Without an answer to the last message it has none.
    """
    chat = messages(
        [
            {"role": ROLES.get(said := str(each.get(role)), said), "content": each.get(content)}
            for each in row[key]
            if isinstance(each, Mapping)
        ]
    )
    turns = chat_turns(chat)
    answer = _said(chat[len(turns[TURNS]) :] if turns else chat, "assistant")
    if turns and answer and not list(python_3([program(answer)])):  # e.g. thanks for the program
        turns, answer = {}, _said(chat, "assistant")
    if not answer and key == "prompt":  # the answer has a column of its own, maybe a chat too
        written = next((row[name] for name in NAMES[0][1] if row.get(name)), "")
        answer = written if isinstance(written, str) else _said(messages(written), "assistant")
    rest = {name: value for name, value in row.items() if name != key}
    return _pair({**rest, **turns}, _said(chat, "user"), answer)


def _said(chat: list[dict[str, str]], role: str) -> str:
    return "\n\n".join(each["content"] for each in chat if each["role"] == role)
