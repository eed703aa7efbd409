"""`ratchet reward score` scores given completions of given problems with the profile's reward."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.reward import score
from problems.columns import ProblemError
from resources.settings import Settings
from rewards.own import RewardFileError

SQUARE = {
    "problem_id": "square", "statement": "Square n.", "style": "call", "entry_point": "sq",
    "tests": [{"args": [2], "expected": 4}, {"args": [3], "expected": 9}], "tags": ["maths"],
    "solutions": ["def sq(n):\n    return n * n\n"],
}  # fmt: skip
QUESTION = {"question_id": "q", "task": "math", "statement": "1 + 1?", "answers": ["2"]}
RIGHT, WRONG = "```python\ndef sq(n):\n    return n**2\n```", "def sq(n):\n    return 4\n"


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scores(
    folder: Path, problem: dict[str, Any], completions: list[tuple[str, str]], *changes: str
) -> tuple[list[dict[str, Any]], str]:
    """Return the rows that are written, and what is printed."""
    problems = lines(folder / "tasks.jsonl", problem)
    given = [{"task_id": task, "completion": text} for task, text in completions]
    console, output = Console(file=io.StringIO(), width=200), folder / "scores.jsonl"
    settings = Settings.read("embedded", changes)
    score(problems, lines(folder / "c.jsonl", *given), output, settings, console)
    written = [json.loads(line) for line in output.read_text().splitlines()]
    return written, console.file.getvalue()  # type: ignore[attr-defined]


def test_each_completion_is_scored_with_its_components(tmp_path: Path) -> None:
    given = [("square", RIGHT), ("tasks/square", WRONG)]
    changes = ("reward.sparse=false", "reward.by.maths.style=1.0")
    rows, printed = scores(tmp_path, SQUARE, given, *changes)
    assert [row["verdict"] for row in rows] == ["AC", "WA"]
    assert rows[1]["components"] == {"correctness": 0.0, "format": 1.0, "style": -0.5}
    assert sum(rows[1]["gave"].values()) == pytest.approx(rows[1]["reward"])
    assert "2 of 2 completions have a score" in printed
    assert "expected 2 = measured 2 + masked 0 + failed 0 + omitted 0" in printed


def test_a_tag_that_no_task_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"no problem has the tag 'mats', did you mean 'maths'"):
        scores(tmp_path, SQUARE | {"gated": True}, [("square", RIGHT)], "reward.by.mats.style=1.0")


def test_a_task_is_found_by_the_id_that_its_file_has(tmp_path: Path) -> None:
    problem = SQUARE | {"problem_id": "own/square"}
    rows, _ = scores(tmp_path, problem, [("own/square", RIGHT), ("tasks/own/square", WRONG)])
    assert [row["verdict"] for row in rows] == ["AC", "WA"]


def test_a_completion_that_cannot_be_judged_is_marked_for_masking(tmp_path: Path) -> None:
    unjudged = SQUARE | {"packages": ["no_such_package"]}
    rows, printed = scores(tmp_path, unjudged, [("square", RIGHT)])
    keys = ("reward", "mask_sample", "failure_kind")
    assert [rows[0][key] for key in keys] == [None, True, "infrastructure"]
    assert "0 of 1 completions have a score" in printed
    assert "expected 1 = measured 0 + masked 1 + failed 0 + omitted 0" in printed


def test_a_completion_for_which_the_reward_fails_is_masked_too(tmp_path: Path) -> None:
    reward = tmp_path / "reward.py"
    reward.write_text(
        "TASK = 'code'\ndef reward(task, completion, report):\n"
        "    if report.passed == 1:\n        raise ValueError(completion)\n    return 1.0\n"
    )
    given = [("square", RIGHT), ("square", WRONG)]
    rows, printed = scores(tmp_path, SQUARE, given, f"reward.file={reward}")
    assert [row["failure_kind"] for row in rows] == [None, "reward"]
    assert "expected 2 = measured 1 + masked 0 + failed 1 + omitted 0" in printed


def test_efficiency_is_measured_against_the_given_solutions(tmp_path: Path) -> None:
    rows, _ = scores(tmp_path, SQUARE, [("square", RIGHT)], "reward.weights.efficiency=0.1")
    assert rows[0]["components"]["efficiency"] > 0.0


def test_questions_are_scored_too(tmp_path: Path) -> None:
    rows, _ = scores(tmp_path, QUESTION, [("q", r"\boxed{2}"), ("q", r"\boxed{3}")])
    assert [row["reward"] for row in rows] == pytest.approx([1.0, -0.8])


def test_an_unknown_task_and_a_reward_file_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"c\.jsonl: no task 'squore', did you mean"):
        scores(tmp_path, SQUARE, [("squore", RIGHT)])
    with pytest.raises(RewardFileError, match=r"--set reward\.file="):
        score(tmp_path / "r.py", tmp_path, None, Settings.read("embedded"), Console())
