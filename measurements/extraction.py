"""Programs that Ratchet finds in published answers, beside those that were judged.

    python -m measurements.extraction FILE...

A `.json` file is a result of LiveCodeBench/submissions (`Scenario.codegeneration_*_eval_all.json`):
answers of a model, the program that LiveCodeBench's harness took from each (the last block), and
whether it passed. Two programs are equal if their syntax trees are.

A `.jsonl` file has chat answers to HumanEval's tasks (`task_id`, `completion`). The programs that
each way of extraction finds are judged by the tasks' tests. `RATCHET_DATA` names the folder of the
benchmarks.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.benchmarks.humaneval import LIMITS
from evaluation.judging.sanitize import sanitize
from problems.schema import Problem
from problems.sources.registry import load
from problems.syntax import tree_of
from rewards.extraction import extract_code
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

Row = dict[str, Any]
BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLE = "\n\nFor example:\n\n```python\nprint({0})\n```\n"


def main() -> None:
    rows = [row for name in sys.argv[1:] if name.endswith(".json") for row in read(name)]
    if rows:
        compared(rows)
    for name in sys.argv[1:]:
        if name.endswith(".jsonl"):
            judged(Path(name))


def compared(rows: list[Row]) -> None:
    """Print for how many answers the judged program is found."""
    right, wrong = (list(published(rows, passed)) for passed in (True, False))
    example = [(row, answer + EXAMPLE.format(call(row)), code) for row, answer, code in right]
    print("| answers | number | last block | Ratchet |\n|---|---|---|---|")
    for kind, answers in (
        ("right programs", right),
        ("wrong programs", wrong),
        ("right programs, and an example call in a block of its own", example),
    ):
        last = sum(normal(block(answer, -1)) == normal(code) for _, answer, code in answers)
        own = sum(
            normal(extract_code(answer, entry_point(row))) == normal(code)
            for row, answer, code in answers
        )
        print(f"| {kind} | {len(answers)} | {last} | {own} |", flush=True)


def judged(file: Path) -> None:
    """Print how many answers are right by each way of extraction."""
    data = os.environ.get("RATCHET_DATA", "../shared/data")
    tasks = {
        f"HumanEval/{task.extra['task_id']}": task
        for task in load("humaneval", Path(data) / "humaneval").problems
    }
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    given = [(tasks[row["task_id"]], row["completion"]) for row in rows]
    example = [(task, text + EXAMPLE.format(f"{task.entry_point}(1)")) for task, text in given]
    print(f"\n| {file.name} | number | {' | '.join(WAYS)} |\n|{'---|' * (len(WAYS) + 2)}")
    with Sandbox() as sandbox:
        for kind, answers in (
            ("as published", given),
            ("with several blocks", [one for one in given if len(BLOCK.findall(one[1])) > 1]),
            ("and an example call in a block of its own", example),
        ):
            counts = [right(answers, way, sandbox) for way in WAYS.values()]
            print(f"| {kind} | {len(answers)} | {' | '.join(map(str, counts))} |", flush=True)


def right(
    answers: Sequence[tuple[Problem, str]], way: Callable[[str, str], str], sandbox: Sandbox
) -> int:
    """Count the answers whose program passes the task's tests, after the task's starter code."""
    jobs = (
        replace(
            task.job(f"{task.starter_code.rstrip()}\n{way(text, task.entry_point or '')}", str(at)),
            limits=LIMITS,
        )
        for at, (task, text) in enumerate(answers)
    )
    return sum(report.verdict is Verdict.AC for report in sandbox.run(jobs))


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


def block(text: str, place: int) -> str:
    blocks = BLOCK.findall(text)
    return blocks[place] if blocks else ""


def normal(program: str) -> str:
    tree = tree_of(program)
    return ast.dump(tree) if tree else program.strip()


WAYS: dict[str, Callable[[str, str], str]] = {
    "first block": lambda text, _: block(text, 0),
    "last block": lambda text, _: block(text, -1),
    "evalplus.sanitize": sanitize,
    "Ratchet": extract_code,
}


if __name__ == "__main__":
    main()
