"""The prompt of a problem, and its tests as people read them.

Training and evaluation use the same prompt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from artifacts.parsing import parse
from problems.schema import Problem
from sandbox.languages import LANGUAGES, PYTHON

TURNS = "chat_turns"  # key in `extra`: the messages of a chat, up to the one to reply to
COMPLETE = "Complete this {} function. Reply with code only."
_STREAMS = re.compile(r"\bstandard (?:input|output)\b|\bstd(?:in|out)\b", re.IGNORECASE)


def prompt_text(problem: Problem) -> str:
    """Return the prompt for a problem.

    It has the statement, the starter code with the function's signature, the visible tests, the
    language if it is not Python, and, if nothing else shows it, the function's name or that a
    program reads standard input.
    """
    shown = [shown_test(problem, test) for test in problem.tests[: problem.visible_tests]]
    statement = problem.statement.strip()
    starter = _starter(problem, "\n".join([statement, *shown]))
    complete = bool(starter) and _words(statement) in _words(starter)
    parts = [] if complete else [statement]
    language = LANGUAGES.get(problem.language)
    title = language.title if language else "Python"
    if starter:
        # Without the second sentence small models explain until they are cut off.
        completes = complete and problem.entry_point
        head = COMPLETE.format(title) if completes else "Start from this code:"
        parts.append(f"{head}\n```{language.fences[0] if language else PYTHON}\n{starter}\n```")
    if "stdin" in problem.kind.keys and not _STREAMS.search(statement):
        parts.append("Read the input from standard input and print the output.")
    if language:
        parts.append(f"Write the program in {title}.")
    if shown:
        parts.append("Your code should pass:\n" + "\n".join(shown))
    text = "\n\n".join(parts)
    if problem.entry_point and not _shows(problem.entry_point, text):
        text += f"\n\nName the function `{problem.entry_point}`."
    return text


def prompt_messages(problem: Problem) -> list[dict[str, str]]:
    """Return the prompt as a chat: `prompt_text` after the earlier turns of the row, if it has
    some.
    """
    turns = messages(problem.extra.get(TURNS))
    if not turns or turns[-1]["content"] not in problem.statement:  # or the statement was rewritten
        return [{"role": "user", "content": prompt_text(problem)}]
    last = replace(problem, statement=turns[-1]["content"])
    return [*turns[:-1], {"role": "user", "content": prompt_text(last)}]


def messages(value: Any) -> list[dict[str, str]]:
    """Return the messages of a chat; an empty list for anything else."""
    return [
        {"role": each["role"], "content": each["content"]}
        for each in (value if isinstance(value, list | tuple) else ())
        if isinstance(each, Mapping)
        and isinstance(each.get("role"), str)
        and isinstance(each.get("content"), str)
    ]


def _words(text: str) -> str:
    """Return a text in one line, without the `//` of comments."""
    return " ".join(re.sub(r"^[ \t]*//", "", text, flags=re.MULTILINE).split())


def _starter(problem: Problem, rest: str) -> str:
    """Return the starter code, with the signature if neither it nor the rest shows it."""
    starter = problem.starter_code.strip("\n")
    name = (problem.entry_point or "").rpartition(".")[2]
    written = problem.language != PYTHON and name in starter
    if not name or written or re.search(rf"\bdef {re.escape(name)}\b", starter + rest):
        return starter
    signature = str(problem.extra.get("signature") or "").strip()
    if not signature and not _shows(problem.entry_point or "", rest):
        signature = next(filter(None, (_signature(each, name) for each in problem.solutions)), "")
    return f"{starter}\n\n{signature}".strip("\n")


def _signature(solution: str, name: str) -> str:
    """Return the first line of a solution's function or method; "" if it has none."""
    for node in ast.walk(parse(solution)):
        owner = node.name if isinstance(node, ast.ClassDef) else ""
        for each in node.body if isinstance(node, ast.ClassDef | ast.Module) else ():
            if isinstance(each, ast.FunctionDef) and each.name == name:
                head = f"def {name}({ast.unparse(each.args)}):"
                return f"class {owner}:\n    {head}" if owner else head
    return ""


def _shows(entry_point: str, text: str) -> bool:
    """Return whether a text shows that this is the function's name: it is called, or marked as
    code. As a word of a sentence it may be missed.
    """
    owner, _, method = entry_point.rpartition("().")
    name = re.escape(method)
    return owner in text and bool(re.search(rf"\b{name}\(|[`'\"]{name}[`'\"]", text))


def shown_test(problem: Problem, test: dict[str, Any]) -> str:
    """Format a test for people: asserts on the function's own name, or input and output."""
    name = problem.entry_point or "candidate"
    return problem.kind.text(test, name, problem.compare, parse)
