"""Verification in the real sandbox: reasons of removal, journal and resuming."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from artifacts.integrity import CorruptArtifact
from artifacts.json_lines import HASH, line_of
from problems.schema import Problem
from problems.verification.problem_check import ANY_ANSWER, NoVerdict, idle_answer
from problems.verification.settings import Verification
from problems.verification.verification import VerifiedProblems, verify
from sandbox.protocol import Job, Limits, Report, Verdict
from sandbox.sandbox import Sandbox

QUICK = Limits(wall_s=20.0, cpu_s=0.5, memory_mb=128)  # a long wall limit for a loaded machine
RULES = Verification(mutants=1, repeats=1)  # for tests that are not about strength
HURRIED = Limits(wall_s=1.0, cpu_s=0.5, memory_mb=128)  # for programs that sleep


class Counted:
    """The real sandbox with recorded jobs; reports of jobs that `spoil` selects become INFRA."""

    def __init__(self, sandbox: Sandbox, spoil: Callable[[Job], bool] = lambda _: False) -> None:
        self.sandbox, self.spoil, self.jobs = sandbox, spoil, list[Job]()

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterable[Report]:
        jobs = list(jobs)
        self.jobs += jobs
        spoilt = {job.job_id for job in jobs if self.spoil(job)}
        for report in self.sandbox.run(jobs, repeat=repeat):
            yield (
                dataclasses.replace(report, verdict=Verdict.INFRA, detail="worker lost")
                if report.job_id in spoilt
                else report
            )

    @property
    def problems_run(self) -> int:
        """Return the number of problems that ran, by their idle programs."""
        return sum(job.source == idle_answer(toy()) for job in self.jobs)


def toy(key: str = "1", solution: str | None = "def f(x): return x + 1", **changes: Any) -> Problem:
    tests = ({"args": [1], "expected": 2}, {"args": [-1], "expected": 0})
    problem = Problem(
        f"toy/{key}",
        "toy",
        "Add one.",
        "call",
        tests,
        "f",
        solutions=(solution,) if solution else (),
        limits=QUICK,
    )
    return dataclasses.replace(problem, **changes)


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


ATTACK = "import os\nos.kill(os.getppid(), 9)\nos.kill(-1, 9)\ndef f(x): return x + 1"
BAD = {
    "wrong": (toy("wrong", "def f(x): return x"), "a solution fails its tests (WA)"),
    "second": (
        toy("second", solutions=("def f(x): return x + 1", "def f(x): return 2")),
        "references disagree",
    ),
    "absent": (
        toy(
            "absent", solutions=("import nosuch\ndef f(x): return x + 1", "def f(x): return x + 1")
        ),
        "not measured, for want of nosuch",
    ),
    "hangs": (toy("hangs", "def f(x):\n    while True: pass"), "a solution fails its tests (TLE)"),
    "sleeps": (
        toy("sleeps", "import time\ndef f(x): time.sleep(60)", limits=HURRIED),
        "a solution fails its tests (TLE)",
    ),
    "syntax": (toy("syntax", "def f(x) return"), "a solution fails its tests (CE)"),
    "attack": (toy("attack", ATTACK), "a solution fails its tests (RE)"),
    "leaves": (
        toy("leaves", "import os\ndef f(x): os._exit(0)"),
        "a solution fails its tests (RE)",
    ),
    "none": (toy("none", None), "no reference solution"),
    "weak": (
        toy("weak", "def f(x): return None", tests=({"args": [1], "expected": None},)),
        "tests too weak",
    ),
    "empty": (
        toy("empty", style="assert", tests=({"source": "def check(candidate): pass"},)),
        "tests too weak",
    ),
    "unusable": (
        toy(
            "unusable",
            style="assert",
            tests=({"source": "import nosuch\ndef check(candidate): pass"},),
        ),
        "its tests cannot be run",
    ),
    "loops": (
        toy(
            "loops",
            style="assert",
            tests=({"source": "def check(candidate):\n    while True: pass"},),
            limits=HURRIED,
        ),
        "a solution fails its tests (TLE)",
    ),
    "deep": (
        toy("deep", tests=({"args": [deep(200)], "expected": 2},)),
        "a solution fails its tests (RE)",
    ),
}


@pytest.mark.slow
def test_each_bad_problem_is_removed_with_its_reason(sandbox: Sandbox, tmp_path: Path) -> None:
    problems = [toy("first"), *(problem for problem, _ in BAD.values()), toy("last")]
    verified = verify(problems, sandbox, tmp_path / "journal.jsonl", RULES)
    assert [problem.problem_id for problem in verified.problems] == ["toy/first", "toy/last"]
    assert {row.problem_id: row.reason for row in verified.removed} == {
        problem.problem_id: reason for problem, reason in BAD.values()
    }
    assert verified.stage.came_in == len(problems)
    assert all(row.detail for row in verified.removed)
    assert verified.isolation


def test_journalled_problems_run_again_only_when_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    problems, journal = (
        [toy("1"), toy("2", "def f(x): return 0"), toy("3")],
        tmp_path / "journal.jsonl",
    )
    first = verify(problems, sandbox, journal, RULES)
    again = Counted(sandbox)
    assert verify(problems, again, journal, RULES) == first
    assert again.jobs == []
    changed = [problems[0], toy("2"), problems[2]]
    assert [p.problem_id for p in verify(changed, again, journal, RULES).problems] == [
        "toy/1",
        "toy/2",
        "toy/3",
    ]
    assert again.problems_run == 1


def test_a_truncated_journal_line_is_judged_again(sandbox: Sandbox, tmp_path: Path) -> None:
    problems, journal = [toy(str(key)) for key in range(4)], tmp_path / "journal.jsonl"
    first = verify(problems, sandbox, journal, RULES)
    journal.write_bytes(journal.read_bytes()[:-7])
    again = Counted(sandbox)
    assert verify(problems, again, journal, RULES) == first
    assert again.problems_run == 1
    assert (
        len({json.loads(line)["content_hash"] for line in journal.read_text().splitlines()})
        == len(journal.read_text().splitlines())
        == 4
    )


def test_a_broken_journal_line_is_refused_by_number(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"content_hash": "x"}\n')
    with pytest.raises(CorruptArtifact, match=r"journal\.jsonl: line 1: "):
        verify([toy()], sandbox, tmp_path / "journal.jsonl")


def test_a_sandbox_failure_raises_and_is_never_a_reason(sandbox: Sandbox, tmp_path: Path) -> None:
    problems = [toy(str(key), f"def f(x): return x + 1  # {key}") for key in range(6)]
    spoilt = Counted(sandbox, lambda job: "# 3" in job.source)
    with pytest.raises(NoVerdict, match=r" 1 of 3 .*toy/3 \(worker lost\)"):
        verify(problems, spoilt, tmp_path / "journal.jsonl", RULES, batch_size=3)
    rest = Counted(sandbox)
    assert len(verify(problems, rest, tmp_path / "journal.jsonl", RULES).problems) == 6
    assert rest.problems_run == 1


def test_progress_counts_problems_at_first_and_each_batch(sandbox: Sandbox, tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    verify(
        [toy(str(key)) for key in range(5)],
        sandbox,
        tmp_path / "j",
        RULES,
        batch_size=2,
        on_progress=lambda done, total: progress.append((done, total)),
    )
    assert progress == [(0, 5), (2, 5), (4, 5), (5, 5)]


def test_slow_problems_are_recorded_every_few_seconds(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("problems.verification.verification.BATCH_S", 0.0)  # all are slow
    done: list[int] = []
    problems = [toy(str(key)) for key in range(12)]
    verify(problems, sandbox, tmp_path / "j", RULES, on_progress=lambda at, _: done.append(at))
    assert done == [0, 8, 10, 12]


def test_an_empty_set_verifies(sandbox: Sandbox, tmp_path: Path) -> None:
    assert verify([], sandbox, tmp_path / "j") == VerifiedProblems([], [])


def test_measured_times_are_journalled_and_propose_limits(sandbox: Sandbox, tmp_path: Path) -> None:
    sleeping = "import time\ndef f(x):\n    time.sleep(0.3)\n    return x + 1"
    # Demonstrations have no mutants, which would all sleep.
    problems = [
        toy("quick", "def f(x): return x + 1", split="demonstrations"),
        toy("slow", sleeping, split="demonstrations"),
    ]
    first = verify(problems, sandbox, tmp_path / "journal", Verification(repeats=1))
    again = verify(problems, sandbox, tmp_path / "journal", Verification(repeats=1))
    quick_row, slow_row = first.measured
    assert again.measured == first.measured
    assert slow_row.wall_s >= 0.3
    assert slow_row.wall_s > quick_row.wall_s
    assert slow_row.proposed
    assert slow_row.proposed["wall_s"] >= 5 * slow_row.wall_s


def test_a_journal_without_times_proposes_no_limits(sandbox: Sandbox, tmp_path: Path) -> None:
    verify([toy("quick", "def f(x): return x + 1")], sandbox, tmp_path / "journal")
    row = json.loads((tmp_path / "journal").read_text())
    without = {key: row[key] for key in row if key not in ("wall_s", "peak_mb", HASH)}
    (tmp_path / "journal").write_bytes(line_of(without))
    verified = verify([toy("quick", "def f(x): return x + 1")], sandbox, tmp_path / "journal")
    assert len(verified.problems) == 1
    assert verified.measured == ()


FLICKERING = "import os\ndef f(x): return x + 1 if os.urandom(1)[0] < 128 else x"


def test_a_flickering_verdict_removes_the_problem(sandbox: Sandbox, tmp_path: Path) -> None:
    sure, unsure = toy("sure"), toy("unsure", FLICKERING)
    one = dataclasses.replace(unsure, tests=unsure.tests[:1])
    verified = verify([sure, one], sandbox, tmp_path / "journal", Verification(repeats=16))
    assert [problem.problem_id for problem in verified.problems] == ["toy/sure"]
    assert verified.removed[0].reason == "verdict flickers"
    assert "AC" in verified.removed[0].detail
    assert "WA" in verified.removed[0].detail


def test_demonstrations_are_not_checked_with_mutants(sandbox: Sandbox, tmp_path: Path) -> None:
    counted = Counted(sandbox)
    verified = verify([toy("1", split="demonstrations")], counted, tmp_path / "journal")
    assert len(verified.problems) == 1
    assert verified.strength == ()
    assert {job.source for job in counted.jobs} == set(toy().solutions)


def test_journal_entries_depend_on_the_rules(sandbox: Sandbox, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    first = verify([toy()], sandbox, journal)
    old = {"content_hash": "x", "problem_id": "y", "reason": None, "detail": "", "isolation": ""}
    journal.write_bytes(line_of(old) + journal.read_bytes())
    second, again = verify([toy()], sandbox, journal, Verification(mutants=1)), Counted(sandbox)
    assert second.strength[0].mutants == 1 < first.strength[0].mutants
    assert verify([toy()], again, journal) == first
    assert again.jobs == []


WRONG = "def f(x): return 2 if x == 1 else 7"


def test_a_wrong_solution_is_dropped_where_two_others_pass(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    right = ("def f(x): return x + 1", "def f(x): return sum((x, 1))")
    problem = toy("three", solutions=(WRONG, *right))
    verified = verify([problem], sandbox, tmp_path / "journal", RULES)
    again = verify([problem], sandbox, tmp_path / "journal", RULES)
    assert again == verified  # from the journal
    [kept] = verified.problems
    assert kept.solutions == right
    assert kept.extra["dropped_solutions"] == [1]
    assert verified.strength[0].references == 2
    assert verified.measured


@pytest.mark.parametrize(
    "solutions",
    [
        ("def f(x): return x + 1", WRONG),
        ("def f(x): return x + 1", "def f(x):\n    return x + 1  # the same", WRONG),
        # as many other answers as right ones, and one more
        (
            "def f(x): return x + 1",
            "def f(x): return sum((x, 1))",
            WRONG,
            "def f(x): return 9",
            "def f(x): return 8",
        ),
    ],
)
def test_a_minority_outvotes_no_other_answers(
    solutions: tuple[str, ...], sandbox: Sandbox, tmp_path: Path
) -> None:
    verified = verify([toy("x", solutions=solutions)], sandbox, tmp_path / "journal", RULES)
    assert verified.removed[0].reason == "references disagree"


def test_a_task_that_accepts_any_answer_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    problem = toy("any")
    words = f"{problem.statement}\n\nIf there are several solutions, return any of them."
    loose = dataclasses.replace(problem, statement=words)
    verified = verify([loose], sandbox, tmp_path / "journal", RULES)
    [removed] = verified.removed
    assert removed.reason == ANY_ANSWER
    assert removed.detail == "If there are several solutions, return any of them"
