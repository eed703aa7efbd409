"""Programs that Ratchet finds in published answers, beside those that were judged.

    python -m measurements.extraction FILE...

FILE is a result of LiveCodeBench/submissions (`Scenario.codegeneration_*_eval_all.json`): answers
of a model, the program that LiveCodeBench's harness took from each (the last block), and whether it
passed. Two programs are equal if their syntax trees are.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from problems.syntax import tree_of
from rewards.extraction import extract_code

Row = dict[str, Any]
BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLE = "\n\nFor example:\n\n```python\nprint({0})\n```\n"


def main() -> None:
    rows = [row for name in sys.argv[1:] for row in read(name)]
    right, wrong = (list(published(rows, passed)) for passed in (True, False))
    example = [(row, answer + EXAMPLE.format(call(row)), code) for row, answer, code in right]
    print("| answers | number | last block | Ratchet |\n|---|---|---|---|")
    for kind, answers in (
        ("right programs", right),
        ("wrong programs", wrong),
        ("right programs, and an example call in a block of its own", example),
    ):
        last = sum(normal(last_block(answer)) == normal(code) for _, answer, code in answers)
        own = sum(
            normal(extract_code(answer, entry_point(row))) == normal(code)
            for row, answer, code in answers
        )
        print(f"| {kind} | {len(answers)} | {last} | {own} |", flush=True)


def published(rows: list[Row], passed: bool) -> Iterator[tuple[Row, str, str]]:
    """Yield the task, the answer and the judged program of answers that passed, or did not."""
    for row in rows:
        lists = row["output_list"], row["code_list"], row["graded_list"]
        for answer, code, right in zip(*lists, strict=True):
            if bool(right) is passed:
                yield row, answer, code


def read(name: str) -> list[Row]:
    return list(json.loads(Path(name).read_text(encoding="utf-8")))


def entry_point(row: Row) -> str | None:
    """Return the method that a task asks for; None for a program."""
    named = re.search(r"def (\w+)\(", row["starter_code"])
    return f"Solution().{named[1]}" if named else None


def call(row: Row) -> str:
    return f"{entry_point(row) or 'solve'}(1)"


def last_block(text: str) -> str:
    blocks = BLOCK.findall(text)
    return blocks[-1] if blocks else ""


def normal(program: str) -> str:
    tree = tree_of(program)
    return ast.dump(tree) if tree else program.strip()


if __name__ == "__main__":
    main()
