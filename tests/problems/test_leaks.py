"""A search for leaks is journaled row by row, and says how far it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from problems.cleaning import compared
from problems.cleaning.curation import curate
from problems.cleaning.leaks import find_leaks
from problems.schema import Problem
from sandbox.sandbox import Sandbox

LOW = Problem(
    "humaneval/0",
    "humaneval",
    "Return the smallest element of the list v, which is not empty.",
    "call",
    tuple({"args": [[n, 5, 7]], "expected": min(n, 5)} for n in (1, 6, 9)),
    entry_point="low",
    solutions=("def low(v):\n    return min(v)\n",),
    gated=True,
)
ROWS = [
    replace(LOW, problem_id="own/same", source="own", gated=False),
    replace(
        LOW,
        problem_id="own/board",
        source="own",
        gated=False,
        statement="Draw a chessboard of n by n squares as text.",
        tests=tuple({"args": [n], "expected": "#" * n} for n in (1, 2, 3)),
        entry_point="board",
        solutions=("def board(n):\n    return '#' * n\n",),
    ),
]


class Unused:
    def run(self, *_: Any) -> None:
        raise AssertionError("every row is known")


@pytest.mark.slow
def test_a_second_pass_compares_only_new_rows(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compared, "FIRST_PART", 1)
    done, journal = list[tuple[int, int]](), tmp_path / "leaks.jsonl"
    first = find_leaks(ROWS[:1], [LOW], sandbox, journal=journal)
    both = find_leaks(
        ROWS, [LOW], sandbox, journal=journal, on_progress=lambda *counts: done.append(counts)
    )
    assert [leak.verdict for leak in both] == ["leak", "clean"]
    assert both[:1] == first
    assert done == [(1, 2), (2, 2)]
    unused: Any = Unused()
    assert find_leaks(ROWS, [LOW], unused, journal=journal) == both


CLOSE = Problem(
    "humaneval/0",
    "humaneval",
    "Check if in the given list of numbers any two numbers are closer to each other than the given "
    "threshold.",
    "call",
    tuple({"args": [[1.0, 2.0, 3.9, 5.0], t], "expected": t > 1.0} for t in (0.3, 2.5, 0.05)),
    entry_point="close",
    solutions=(
        "def close(v, t):\n    v = sorted(v)\n"
        "    return any(b - a < t for a, b in zip(v, v[1:]))\n",
    ),
    gated=True,
)
ALIKE = {
    "an input at the bound": (
        CLOSE.statement.replace("than the", "than or as close as the"),
        CLOSE.solutions[0].replace("<", "<="),
    ),
    "a test of the task": (
        CLOSE.statement.replace("any two", "any two odd"),
        "def close(v, t):\n    return 2 * t > 2.5\n",
    ),
    "a test of the task, and one more word": (
        CLOSE.statement.replace("threshold.", "threshold, zeros not counted."),
        "def close(v, t):\n    return len(v) > 9\n",
    ),
}


@pytest.mark.slow
def test_a_row_whose_program_differs_on_an_input_is_no_leak(sandbox: Sandbox) -> None:
    rows = [
        replace(CLOSE, problem_id=f"own/{at}", source="own", gated=False, tests=())
        for at, _ in enumerate(ALIKE)
    ]
    rows = [
        replace(row, statement=statement, solutions=(program,))
        for row, (statement, program) in zip(rows, ALIKE.values(), strict=True)
    ]
    found = find_leaks(
        [*rows, replace(rows[0], problem_id="own/same", statement=CLOSE.statement)],
        [CLOSE],
        sandbox,
    )
    assert [leak.verdict == "leak" for leak in found] == [False, False, False, True]


@pytest.mark.slow
def test_other_tasks_are_compared_anew(sandbox: Sandbox, tmp_path: Path) -> None:
    journal = tmp_path / "leaks.jsonl"
    find_leaks(ROWS[1:], [LOW], sandbox, journal=journal)
    task = replace(ROWS[1], problem_id="humaneval/1", source="humaneval", gated=True)
    [found] = find_leaks(ROWS[1:], [LOW, task], sandbox, journal=journal)
    assert found.gated_id == "humaneval/1"


@pytest.mark.slow
def test_cleaning_resumes_and_says_how_far_it_is(sandbox: Sandbox, tmp_path: Path) -> None:
    done, journal = list[tuple[int, int]](), tmp_path / "cleaning.jsonl"
    rows = [replace(row, licence="MIT") for row in ROWS]
    curate(rows[:1], [LOW], None, sandbox, journal)
    both = curate(
        rows, [LOW], None, sandbox, journal, on_progress=lambda *counts: done.append(counts)
    )
    assert done == [(1, 2), (2, 2)]
    assert both == curate(rows, [LOW], None, sandbox)
