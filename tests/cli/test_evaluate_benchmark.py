"""`ratchet evaluate --benchmark --completions`, on tasks of HumanEval, in the real sandbox."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.evaluate_benchmark import EvaluationOptions, evaluate_completions
from cli.reproduce import reproduce
from evaluation.benchmarks.registry import opened
from evaluation.completions import Completion
from evaluation.judging import judge as judging
from evaluation.judging.reports import ATTEMPTS, NotJudged
from evaluation.reports.cost import Price
from problems.columns import ProblemError
from resources.settings import Settings
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox

DATA = Path(__file__).parents[3] / "shared" / "data"
HUMANEVAL = DATA / "humaneval" / "HumanEval.jsonl.gz"
pytestmark = pytest.mark.skipif(not HUMANEVAL.exists(), reason=f"no benchmark files in {DATA}")


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[dict[str, Any]]]:
    """A file of HumanEval's first three tasks, and its rows."""
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    with gzip.open(HUMANEVAL, "rt", encoding="utf-8") as lines:
        rows = [json.loads(next(lines)) for _ in range(3)]
    file = tmp_path / "three.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file, rows


def told(file: Path, rows: list[tuple[str, str]]) -> Path:
    file.write_text(
        "".join(json.dumps({"task_id": task, "completion": text}) + "\n" for task, text in rows)
    )
    return file


def run(asked: EvaluationOptions, completions: Path) -> tuple[int, str]:
    console = Console(record=True, width=200, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    return evaluate_completions(
        completions, asked, Settings.read().home.path, console, Console(stderr=True, quiet=True)
    ), console.export_text()


def test_verdicts_and_scorecard_are_written_and_a_second_run_judges_nothing(
    three: tuple[Path, list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, rows = three
    answers = [
        (row["task_id"], text)
        for row in rows
        for text in (row["canonical_solution"], "    return None\n")
    ]
    asked = EvaluationOptions("humaneval", file, tmp_path / "verdicts.jsonl", ks=(1, 2, 3))
    code, said = run(asked, told(tmp_path / "answers.jsonl", answers))
    written = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert code == 0 and "50.0 %" in said and "no estimate: HumanEval/0 has 2 samples" in said
    assert [(row["task_id"], row["sample"], row["base"]) for row in written][:2] == [
        ("HumanEval/0", 0, True),
        ("HumanEval/0", 1, False),
    ]
    card = json.loads((tmp_path / "verdicts.scorecard.json").read_text())
    assert "took" not in said and set(card["figures"]["spent"].values()) == {
        None
    }  # the file does not say
    base = card["figures"]["scores"]["base"]
    assert base["pass@2"]["value"] == 1.0 and base["pass@3"]["value"] is None
    monkeypatch.setattr(Sandbox, "__enter__", lambda self: pytest.fail("a sandbox was opened"))
    assert run(asked, tmp_path / "answers.jsonl")[0] == 0
    remembered = tmp_path / "home" / "benchmarks" / "humaneval.verdicts.jsonl"
    lines = [json.loads(line) for line in remembered.read_text().splitlines()]
    remembered.write_text(
        "".join(
            json.dumps({key: row[key] for key in ("key", "verdict", "detail", "seconds")}) + "\n"
            for row in lines
        )
    )
    assert (
        run(asked, tmp_path / "answers.jsonl")[0] == 0
    )  # lines as they were before they told the failing test


def test_what_a_solved_problem_took_is_said_where_the_answers_say_it(
    three: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    file, rows = three
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
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, said = run(
        EvaluationOptions("humaneval", file, price=Price(million_tokens=2.0)),
        tmp_path / "answers.jsonl",
    )
    assert "a solved problem took: 150 tokens, 6 s, 0.0003 of the price" in said


def test_tasks_without_answers_are_refused_or_stamped(
    three: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    file, rows = three
    answers = told(
        tmp_path / "answers.jsonl", [(rows[0]["task_id"], rows[0]["canonical_solution"])]
    )
    with pytest.raises(
        ProblemError,
        match=r"2 of 3 tasks have no completion \(HumanEval/1, HumanEval/2\).*--allow-partial",
    ):
        run(EvaluationOptions("humaneval", file), answers)
    assert (
        "PARTIAL: 2 of 3 tasks"
        in run(EvaluationOptions("humaneval", file, partial=True), answers)[1]
    )


def test_answers_to_unknown_tasks_are_refused(
    three: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    with pytest.raises(
        ProblemError, match=r"1 task ids are unknown, the first is HumanEval/9.*--data"
    ):
        run(
            EvaluationOptions("humaneval", three[0]),
            told(tmp_path / "answers.jsonl", [("HumanEval/9", "x")]),
        )


@pytest.mark.slow
def test_a_task_whose_package_is_absent_is_not_measured_and_not_failed(
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
    answers = told(
        tmp_path / "answers.jsonl",
        [(task, row["canonical_solution"]) for task, row in rows.items()],
    )
    run(EvaluationOptions("bigcodebench", file, tmp_path / "verdicts.jsonl"), answers)
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


def test_an_answer_to_a_leetcode_task_needs_none_of_the_imports_that_upstream_puts_before_it(
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
        (tmp_path / "answers.jsonl").write_text(
            json.dumps({"task_id": "twice", key: row["completion"]}) + "\n"
        )
        assert (
            "100.0 %"
            in run(
                EvaluationOptions("leetcode", tmp_path / "data.jsonl"), tmp_path / "answers.jsonl"
            )[1]
        )


def test_an_answer_to_livecodebench_has_upstream_s_names(
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
    answer = row["starter_code"] + "return [pow(2, 1) * each for each in accumulate(xs)]"
    (tmp_path / "said.json").write_text(json.dumps([{"question_id": "1", "code_list": [answer]}]))
    assert (
        "100.0 %"
        in run(EvaluationOptions("livecodebench", tmp_path / "test.jsonl"), tmp_path / "said.json")[
            1
        ]
    )
    at = opened("livecodebench", tmp_path / "test.jsonl", tmp_path)
    harness = at.benchmark().harness
    [task] = harness.tasks.values()
    program = harness.program(task, Completion("1", 0, answer, whole=True), False)
    assert program.startswith("from string import *") and program.endswith(answer)


def test_of_what_a_chat_says_the_fenced_program_is_judged(
    three: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    file, rows = three
    harness = opened("humaneval", file, tmp_path).benchmark().harness
    for row in rows:
        program, task = row["prompt"] + row["canonical_solution"], harness.tasks[row["task_id"]]
        said = Completion(
            row["task_id"], 0, f"Here it is:\n```python\n{program}```\nIt passes.", whole=True
        )
        judged = harness.program(task, harness.extracted(task, said), False)
        assert judged == f"{row['prompt'].rstrip()}\n{program}"  # after the task's own imports


def test_what_the_sandbox_fails_is_asked_again_and_never_scored(
    three: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    found = opened("humaneval", three[0], tmp_path).benchmark().harness

    class Broken:
        asked = 0

        def __enter__(self) -> Broken:
            return self

        def __exit__(self, *_: object) -> None: ...

        def run(self, jobs: list[Any]) -> list[Report]:
            Broken.asked += 1
            return [Report(job.job_id, Verdict.INFRA, ()) for job in jobs]

    with pytest.raises(NotJudged, match="run it again"):
        judging.judge(
            found, [Completion("HumanEval/0", 0, "x", whole=False)], Broken, judging.Verdicts(None)
        )
    assert Broken.asked == ATTEMPTS


def test_a_benchmark_of_ones_own_names_data_prompt_and_extraction(
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
    said = Completion(
        "twice", 0, "Here:\n```python\ndef twice(n):\n    return 2 * n\n```", whole=True
    )
    assert at.benchmark().harness.extracted(None, said).text == "def twice(n):\n    return 2 * n\n"
    answers = tmp_path / "answers.jsonl"
    answers.write_text(
        json.dumps({"task_id": "twice", "solution": "def twice(n):\n    return 2 * n\n"})
    )
    assert "100.0 %" in run(EvaluationOptions(str(tmp_path / "mine.yaml")), answers)[1]
