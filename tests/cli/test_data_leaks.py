"""`ratchet data leaks` says of each row whether it leaks a task, whatever its words and names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.data import app
from cli.data.leaks import _table
from problems.cleaning.leaks import Leak
from problems.columns import ProblemError

DATA = Path(
    os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data")
)
ROWS = [
    # HumanEval/34, in other words and with another program
    (
        "leak",
        "Give back the distinct elements of a list in sorted order.",
        "def tidy(v):\n    out = []\n    for x in v:\n        if x not in out:\n"
        "            out.append(x)\n    return sorted(out)\n",
    ),
    # HumanEval/72's program alone, edited
    (
        "leak",
        "Tell whether the thing can go.",
        "def go(items, limit):\n    if sum(items) > limit:\n        return False\n\n"
        "    low, high = 0, len(items)-1\n    while low<high:\n"
        "        if items[low] != items[high]:\n            return False\n"
        "        low += 1\n        high -= 1\n    return True\n",
    ),
    # sounds like HumanEval/35
    ("clean", "Return the minimum element in the list.", "def low(v):\n    return min(v)\n"),
    (
        "clean",
        "Draw a chessboard of n by n squares as text.",
        "def board(n):\n    return '#' * n\n",
    ),
]


@pytest.mark.slow
def test_rows_are_judged_by_meaning_and_behaviour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (DATA / "humaneval").is_dir():
        pytest.skip(f"no {DATA / 'humaneval'}: set RATCHET_DATA to the folder that holds it")
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    rows, out = tmp_path / "rows.jsonl", tmp_path / "findings.jsonl"
    rows.write_text(
        "".join(
            json.dumps({"id": str(at), "statement": statement, "solutions": [program]}) + "\n"
            for at, (_, statement, program) in enumerate(ROWS)
        )
    )
    arguments = ["leaks", str(rows), "--benchmark", "humaneval", "--data", str(DATA)]
    result = CliRunner().invoke(app, [*arguments, "--out", str(out)])
    findings = [json.loads(line) for line in out.read_text().splitlines()]
    assert result.exit_code == 1
    assert [finding["verdict"] for finding in findings] == [verdict for verdict, *_ in ROWS]
    assert [finding["gated_id"] for finding in findings] == ["humaneval/34", "humaneval/72", "", ""]
    assert findings[0]["kind"] == "same behaviour"


def test_brackets_in_rows_and_evidence_are_printed_as_they_are(tmp_path: Path) -> None:
    rows, console = tmp_path / "rows.jsonl", Console(width=200, record=True)
    rows.write_text('{"[/b]": 1}\n')
    result = CliRunner().invoke(app, ["leaks", str(rows), "--benchmark", "humaneval"])
    assert isinstance(result.exception, ProblemError)
    assert "among [/b]" in result.output
    console.print(_table([Leak("[i]", "leak", "humaneval/1", "text", "a[/b]\\")], 1))
    printed = console.export_text()
    assert "[i]" in printed
    assert "a[/b]\\ " in printed


def test_every_row_that_cannot_be_read_is_named_and_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    rows, tasks = tmp_path / "rows.jsonl", tmp_path / "HumanEval.jsonl"
    task = {
        "task_id": "HumanEval/0",
        "prompt": 'def low(v):\n    """ Return the minimum element of v. """\n',
        "canonical_solution": "    return min(v)\n",
        "test": "def check(candidate):\n    assert candidate([2, 1]) == 1\n",
        "entry_point": "low",
    }
    tasks.write_text(json.dumps(task) + "\n")
    clean = {"id": "clean", "statement": "Draw a chessboard of n by n squares as text."}
    unread = [clean | {"id": str(at), "style": "call", "tests": [at]} for at in range(25)]
    rows.write_text("".join(json.dumps(row) + "\n" for row in [clean, *unread]))
    arguments = ["leaks", str(rows), "--benchmark", "humaneval", "--data", str(tasks)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "1 clean, 25 skipped" in result.stdout
    assert all(f"line {line}: " in result.stderr for line in range(2, 27))
