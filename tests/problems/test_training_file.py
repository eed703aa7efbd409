"""Rows of files for fine-tuning are read as a statement and a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from problems.columns import ProblemError
from problems.reading.place import Place
from problems.training_file import read_training_file

ASKED, CODE = "Double n.", "def twice(n):\n    return 2 * n\n"
FENCED = f"Here it is:\n\n```python\n{CODE}```\n"


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": ASKED, "completion": CODE},
        {"instruction": "Double", "input": "n.", "output": FENCED},
        {"instruction": ASKED, "input": "", "output": CODE},
        {"question": ASKED, "answer": FENCED},
        {"messages": [{"role": "system", "content": "Think."}, {"role": "user", "content": ASKED},
                      {"role": "assistant", "content": FENCED}]},
        {"conversations": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": FENCED}]},
        {"statement": ASKED, "solutions": [CODE], "prompt": "other"},
        {"messages": [], "prompt": ASKED, "completion": CODE},
    ],
)  # fmt: skip
def test_a_row_for_fine_tuning_is_a_statement_and_a_program(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row) + "\n")
    [problem], rejected = read_training_file(file, Place())
    assert not rejected
    assert problem.solutions == (CODE,)
    assert problem.statement.split() == ASKED.split()


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (b'{"text": "Double n."}\n', "no statement among text"),
        (b'{"prompt": "", "completion": "x"}\n', "no statement among prompt, completion"),
        ('{"prompt": "Double n."}'.encode("utf-16"), "byte 0 is not UTF-8"),
    ],
)
def test_a_row_without_a_statement_is_named(tmp_path: Path, written: bytes, named: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(written)
    problems, [rejected] = read_training_file(file, Place())
    assert not problems
    assert named in rejected.reason


def test_a_csv_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes("prompt,completion\nDouble n.,x\n".encode("utf-16"))
    with pytest.raises(ProblemError, match=r"the header is not UTF-8.*utf-16"):
        read_training_file(file, Place())


def test_an_answer_that_is_no_python_leaves_the_statement(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"prompt": ASKED, "completion": "Sure, it is 2 times n!"}))
    [problem], _ = read_training_file(file, Place())
    assert problem.statement == ASKED
    assert not problem.solutions


def test_each_answer_to_the_same_prompt_is_a_row(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    answers = [CODE, "n = int(input())\nprint(n + n)\n", CODE]
    rows = [json.dumps({"prompt": ASKED, "completion": answer}) for answer in answers]
    file.write_text("\n".join(rows))
    problems, rejected = read_training_file(file, Place())
    assert not rejected
    assert [problem.solutions[0] for problem in problems] == answers
    assert len({problem.problem_id for problem in problems}) == 3
