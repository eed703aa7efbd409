"""Earlier turns of a row's chat reach the prompt that verl trains on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from problems.dataset.rl_parquet import verl_table
from problems.reading.place import Place
from problems.schema import Problem, read_parquet, write_parquet
from problems.sources.registry import read
from problems.training_file import read_training_file

FIRST, REPLY, LAST = "Write f(x), x plus one.", "def f(x): return x + 1", "Now twice x."
CODE = "def f(x):\n    return 2 * x\n"
TESTS = {"tests": [{"args": [1], "expected": 2}], "style": "call", "entry_point": "f"}
TRUTH = json.dumps({"inputs": ["1\n"], "outputs": ["2\n"]})


def chat(*said: str, names: str = "user assistant", keys: str = "role content") -> list[Any]:
    role, content = keys.split()
    return [{role: names.split()[at % 2], content: text} for at, text in enumerate(said)]


ROWS: dict[str, dict[str, Any]] = {
    "messages": {"messages": chat(FIRST, REPLY, LAST, CODE), **TESTS},
    "conversations": {
        "conversations": chat(FIRST, REPLY, LAST, CODE, names="human gpt", keys="from value"),
        **TESTS,
    },
    "prompt and tests": {"prompt": chat(FIRST, REPLY, LAST), **TESTS},
    "prompt and completion": {
        "prompt": chat(FIRST, REPLY, LAST),
        "completion": chat("?", CODE),
        **TESTS,
    },
    "verl": {
        "data_source": "x",
        "prompt": chat(FIRST, REPLY, LAST),
        "reward_model": {"style": "rule", "ground_truth": TRUTH},
    },
}


def prompt_of(problem: Problem, folder: Path) -> list[dict[str, str]]:
    write_parquet([problem], folder / "problems.parquet")
    [stored] = read_parquet(folder / "problems.parquet")
    [row] = verl_table([stored]).to_pylist()
    prompt: list[dict[str, str]] = row["prompt"]
    return prompt


@pytest.mark.parametrize("shape", ROWS)
def test_earlier_turns_reach_the_training_prompt(shape: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROWS[shape]))
    [problem], _ = read_training_file(tmp_path / "rows.jsonl", Place())
    *earlier, last = prompt_of(problem, tmp_path)
    assert earlier == chat(FIRST, REPLY)
    assert last["content"].startswith(LAST)
    assert FIRST not in last["content"]
    assert problem.statement == f"{FIRST}\n\n{LAST}"  # what duplicates and leaks are found by
    assert problem.solutions in ((), (CODE,))


def test_a_column_with_a_chat_can_be_the_statement(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps({"dialog": chat(FIRST, REPLY, LAST), "solutions": [CODE], **TESTS}))
    [(_, problem)] = read("mine", Place(path=file, columns={"statement": "dialog"}))
    assert isinstance(problem, Problem)
    assert prompt_of(problem, tmp_path)[:2] == chat(FIRST, REPLY)


def test_thanks_after_the_program_are_no_turn(tmp_path: Path) -> None:
    said = chat(FIRST, f"```python\n{CODE}```", "Thanks!", "You are welcome.")
    row = {"messages": said, **TESTS}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    [problem], _ = read_training_file(tmp_path / "rows.jsonl", Place())
    assert problem.solutions == (CODE,)
    assert len(prompt_of(problem, tmp_path)) == 1
