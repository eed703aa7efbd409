"""Answers that are refusals count as such, and real answers do not."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import problems
from serving.gateway.declined import asks_for_code, declined

REFUSALS = [
    "",
    "  \n",
    "I'm sorry, but I can't help with that.",
    "I’m sorry, but I can’t assist with that request.",
    "Sorry, I cannot provide code for this.",
    "Unfortunately, I am unable to help you with this task.",
    "As an AI language model, I do not have opinions.",
    "I must decline to answer.",
    "I won't write that.",
    "We cannot currently generate this.",
]
ANSWERS = [
    "def solve(x):\n    return x[1:]",
    "    return x[1:]",
    "x = sorted(x)",
    "lambda x: x + 1",
    "[a for a in x if a]",
    "words.sort()",
    "```js\nconst f = () => 1\n```",
    "I can't help but admire it:\n```python\ndef solve(x):\n    return x\n```",
    "int main() {\n  return 0;\n}",
    "import math",
    "SELECT name\nFROM users",
    "<p>Hello</p>",
    "#!/bin/sh\nls",
    "echo $HOME",
]
PROSE = [
    "The list is sorted first, and then its first half is returned.",
    "You can't return a list here, since the caller expects a tuple.",
    "I cannot see a faster way than sorting.",
    "Yes.",
    "42",
]


@pytest.mark.parametrize("text", REFUSALS)
@pytest.mark.parametrize("asked", [False, True])
def test_a_refusal_is_one_whatever_was_asked(text: str, asked: bool) -> None:
    assert declined(text, asked)


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.parametrize("asked", [False, True])
def test_code_is_an_answer(text: str, asked: bool) -> None:
    assert not declined(text, asked)


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_an_answer_unless_code_was_asked_for(text: str) -> None:
    assert not declined(text, code_was_asked=False)
    assert text == "42" or declined(text, code_was_asked=True)


def test_every_function_of_a_real_package_is_an_answer() -> None:
    files = sorted(Path(inspect.getfile(problems)).parent.rglob("*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    functions = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    bodies = ["\n".join(map(ast.unparse, f.body[1:])) for f in functions if f.body[1:]]
    assert len(bodies) > 200
    assert [body for body in bodies if declined(body, code_was_asked=True)] == []


@pytest.mark.parametrize(
    ("prompt", "asks"),
    [
        ("Write a function that adds two numbers.", True),
        ("Implement the class Queue in Python", True),
        ("Given a list x, solve(x) should skip the first 2.", True),
        ("def add(a, b):\n", True),
        ("What does a function return?", False),
        ("Why is the sky blue?", False),
    ],
)
def test_a_request_for_code_is_known_by_its_last_message(prompt: str, asks: bool) -> None:
    assert asks_for_code(prompt) is asks
    assert asks_for_code([{"role": "user", "content": prompt}]) is asks


def test_code_after_long_reasoning_is_an_answer() -> None:
    assert not declined("The list is sorted first. " * 1000 + "\ndef solve(x): ...", True)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "What does this return?\ndef add(a, b):\n    return a + b"},
        {"role": "user", "content": "Explain the code of this function."},
        {"role": "tool", "content": "def add(a, b):\n    return a + b"},
    ],
)
def test_prose_about_code_is_an_answer(message: dict[str, str]) -> None:
    assert not asks_for_code([{"role": "user", "content": "hello"}, message])
