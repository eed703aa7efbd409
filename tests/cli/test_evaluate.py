"""`ratchet evaluate --benchmark` judges completions of a file, in the real sandbox."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.evaluate.completions import EvaluationOptions, evaluate_completions
from cli.reproduce import reproduce
from evaluation.benchmarks.registry import opened
from evaluation.completions import Completion
from evaluation.reports.cost import Price
from problems.columns import ProblemError
from resources.settings import Settings
from sandbox.sandbox import Sandbox

DATA = Path(os.environ.get("RATCHET_DATA", Path(__file__).parents[3] / "shared" / "data"))
HUMANEVAL = DATA / "humaneval" / "HumanEval.jsonl.gz"
pytestmark = pytest.mark.skipif(not HUMANEVAL.exists(), reason=f"no benchmark files in {DATA}")


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[dict[str, Any]]]:
    """Return a file with HumanEval's first three tasks, and its rows."""
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    with gzip.open(HUMANEVAL, "rt", encoding="utf-8") as lines:
        rows = [json.loads(next(lines)) for _ in range(3)]
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file, rows


def write_completions(file: Path, rows: list[tuple[str, str]]) -> Path:
    file.write_text(
        "".join(json.dumps({"task_id": task, "completion": text}) + "\n" for task, text in rows)
    )
    return file


def run(options: EvaluationOptions, completions: Path) -> tuple[int, str]:
    """Return the exit code and the output."""
    console = Console(record=True, width=200, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    return evaluate_completions(
        completions, options, Settings.read().home.path, console, Console(stderr=True, quiet=True)
    ), console.export_text()


def test_a_second_run_uses_the_cached_verdicts(
    tasks: tuple[Path, list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, rows = tasks
    completions = [
        (row["task_id"], text)
        for row in rows
        for text in (row["canonical_solution"], "    return None\n")
    ]
    options = EvaluationOptions("humaneval", file, tmp_path / "verdicts.jsonl", ks=(1, 2, 3))
    code, output = run(options, write_completions(tmp_path / "completions.jsonl", completions))
    written = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert code == 0
    assert "50.0 %" in output
    assert re.search("HumanEval/0 has 2 samples", output)
    assert [(row["task_id"], row["sample"], row["base"]) for row in written][:2] == [
        ("HumanEval/0", 0, True),
        ("HumanEval/0", 1, False),
    ]
    card = json.loads((tmp_path / "verdicts.scorecard.json").read_text())
    # The file has neither tokens nor seconds.
    assert "cost" not in output
    assert set(card["figures"]["spent"].values()) == {None}
    base = card["figures"]["scores"]["base"]
    assert base["pass@2"]["value"] == 1.0
    assert base["pass@3"]["value"] is None
    monkeypatch.setattr(Sandbox, "__enter__", lambda self: pytest.fail("a sandbox was opened"))
    assert run(options, tmp_path / "completions.jsonl")[0] == 0


def test_the_cost_of_a_solved_problem_is_shown_if_known(
    tasks: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    file, rows = tasks
    lines = [
        {
            "task_id": row["task_id"],
            "completion": row["canonical_solution"],
            "tokens": 50,
            "seconds": 2.0,
        }
        for row in rows[:1]
    ]
    lines += [
        {"task_id": row["task_id"], "completion": "    pass\n", "tokens": 50, "seconds": 2.0}
        for row in rows[1:]
    ]
    (tmp_path / "completions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, output = run(
        EvaluationOptions("humaneval", file, price=Price(million_tokens=2.0)),
        tmp_path / "completions.jsonl",
    )
    assert "150 tokens, 6 s, 0.0003" in output


def test_tasks_without_completions_are_refused_or_marked(
    tasks: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    file, rows = tasks
    completions = write_completions(
        tmp_path / "completions.jsonl", [(rows[0]["task_id"], rows[0]["canonical_solution"])]
    )
    with pytest.raises(
        ProblemError,
        match=r"2 of 3 tasks.*HumanEval/1, HumanEval/2.*--allow-partial",
    ):
        run(EvaluationOptions("humaneval", file), completions)
    assert (
        "PARTIAL: 2 of 3 tasks"
        in run(EvaluationOptions("humaneval", file, partial=True), completions)[1]
    )


def test_completions_of_unknown_tasks_are_refused(
    tasks: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    with pytest.raises(ProblemError, match=r"\b1 task.*HumanEval/9.*--data"):
        run(
            EvaluationOptions("humaneval", tasks[0]),
            write_completions(tmp_path / "completions.jsonl", [("HumanEval/9", "x")]),
        )


@pytest.mark.slow
def test_a_task_with_a_missing_package_is_unmeasured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    source = DATA / "bigcodebench" / "BigCodeBench.jsonl.gz"
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        rows = {
            row["task_id"]: row
            for row in map(json.loads, lines)
            if row["task_id"] in ("BigCodeBench/13", "BigCodeBench/16", "BigCodeBench/1034")
        }
    file = tmp_path / "some.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    completions = write_completions(
        tmp_path / "completions.jsonl",
        [(task, row["canonical_solution"]) for task, row in rows.items()],
    )
    run(EvaluationOptions("bigcodebench", file, tmp_path / "verdicts.jsonl"), completions)
    card = json.loads((tmp_path / "verdicts.scorecard.json").read_text())
    assert "needs" in card["unmeasured"]["BigCodeBench/1034"]
    assert card["figures"]["verdicts"].get("AC", 0) == len(rows) - len(card["unmeasured"])
    assert (
        reproduce(
            str(tmp_path / "verdicts.scorecard.json"),
            tmp_path / "again.json",
            Settings.read(),
            Console(quiet=True),
        )
        == 0
    )
    assert json.loads((tmp_path / "again.json").read_text())["unmeasured"] == card["unmeasured"]


def test_a_leetcode_completion_gets_upstream_s_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    row = {
        "task_id": "twice",
        "prompt": "from typing import List\n",
        "problem_description": "Double each.",
        "entry_point": "Solution().twice",
        "completion": "class Solution:\n    def twice(self, xs: List[int]) -> List[int]:\n"
        "        return [2 * x for x in xs]\n",
        "test": "def check(candidate):\n    assert candidate([1, 2]) == [2, 4]\n",
    }
    (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
    for key in ("completion", "solution"):
        (tmp_path / "completions.jsonl").write_text(
            json.dumps({"task_id": "twice", key: row["completion"]}) + "\n"
        )
        assert (
            "100.0 %"
            in run(
                EvaluationOptions("leetcode", tmp_path / "data.jsonl"),
                tmp_path / "completions.jsonl",
            )[1]
        )


def test_a_livecodebench_completion_gets_upstream_s_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    case = {"input": "[3]", "output": "[6]", "testtype": "functional"}
    row = {
        "question_id": "1",
        "question_title": "twice",
        "question_content": "Double each.",
        "platform": "leetcode",
        "contest_date": "2024-10-01",
        "starter_code": "class Solution:\n"
        "    def twice(self, xs: List[int]) -> List[int]:\n        ",
        "difficulty": "easy",
        "public_test_cases": json.dumps([case]),
        "private_test_cases": json.dumps([case]),
        "metadata": json.dumps({"func_name": "twice"}),
    }
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n")
    program = row["starter_code"] + "return [pow(2, 1) * each for each in accumulate(xs)]"
    (tmp_path / "completions.json").write_text(
        json.dumps([{"question_id": "1", "code_list": [program]}])
    )
    assert (
        "100.0 %"
        in run(
            EvaluationOptions("livecodebench", tmp_path / "test.jsonl"),
            tmp_path / "completions.json",
        )[1]
    )
    at = opened("livecodebench", tmp_path / "test.jsonl", tmp_path)
    harness = at.benchmark().harness
    [task] = harness.tasks.values()
    judged = harness.program(task, Completion("1", 0, program, whole=True), False)
    assert judged.startswith("from string import *")
    assert judged.endswith(program)


def test_the_fenced_program_of_a_chat_is_judged(
    tasks: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    file, rows = tasks
    harness = opened("humaneval", file, tmp_path).benchmark().harness
    for row in rows:
        program, task = row["prompt"] + row["canonical_solution"], harness.tasks[row["task_id"]]
        completion = Completion(
            row["task_id"], 0, f"Here it is:\n```python\n{program}```\nIt passes.", whole=True
        )
        judged = harness.program(task, harness.extracted(task, completion), False)
        assert judged == f"{row['prompt'].rstrip()}\n{program}"  # after the task's own imports


def test_a_custom_benchmark_sets_data_prompt_and_extraction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    problem = {
        "id": "twice",
        "statement": "Double.",
        "style": "call",
        "entry_point": "twice",
        "tests": [{"args": [2], "expected": 4}],
    }
    (tmp_path / "mine.jsonl").write_text(json.dumps(problem))
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ndata: mine.jsonl\nprompt: 'Write: {statement}'\nextraction: fence\n"
    )
    at = opened(str(tmp_path / "mine.yaml"), None, tmp_path)
    assert at.benchmark().prompt(at.problems[0]) == [{"role": "user", "content": "Write: Double."}]
    completion = Completion(
        "twice", 0, "Here:\n```python\ndef twice(n):\n    return 2 * n\n```", whole=True
    )
    harness = at.benchmark().harness
    extracted = harness.extracted(next(iter(harness.tasks.values())), completion)
    assert extracted.text == "def twice(n):\n    return 2 * n\n"
    completions = tmp_path / "completions.jsonl"
    completions.write_text(
        json.dumps({"task_id": "twice", "solution": "def twice(n):\n    return 2 * n\n"})
    )
    assert "100.0 %" in run(EvaluationOptions(str(tmp_path / "mine.yaml")), completions)[1]


def test_tasks_that_cannot_be_measured_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    words = {"open": "Add one. If there are several answers, return any of them."}
    solutions = {"fails": ["def f(x): return x"], "right": ["def f(x): return x + 1"]}
    names = ("fails", "open", "right")
    problems = [
        {
            "id": name,
            "statement": words.get(name, "Add one."),
            "style": "call",
            "entry_point": "f",
            "tests": [{"args": [1], "expected": 2}],
            "solutions": solutions.get(name, []),
        }
        for name in names
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, problems)))
    (tmp_path / "mine.yaml").write_text("name: mine\ndata: mine.jsonl\n")
    completions = tmp_path / "completions.jsonl"
    answers = [{"task_id": name, "solution": "def f(x): return x + 1"} for name in names]
    completions.write_text("\n".join(map(json.dumps, answers)))
    shown = run(EvaluationOptions(str(tmp_path / "mine.yaml")), completions)[1]
    assert "100.0 %" in shown
    assert "not measured: 2 tasks (fails, open); the first its own reference fails (WA)" in shown
