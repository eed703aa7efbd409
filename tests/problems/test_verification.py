"""Verification in the real sandbox: what is wrong with a problem is a reason, and no verdict is lost, redone or recorded twice."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from problems.columns import ProblemError
from problems.schema import Problem, set_hash, write_parquet
from problems.verification.verification import Verification, Verified, verify
from problems.verification.verification_batch import NoVerdict, idle_answer
from sandbox.protocol import Job, Limits, Report, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

QUICK = Limits(
    wall_s=20.0, cpu_s=0.5, memory_mb=128
)  # the clock is for a machine that stands still
HURRIED = Limits(wall_s=1.0, cpu_s=0.5, memory_mb=128)  # and for what waits


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


class Counted:
    """The real sandbox, with the jobs counted; `spoil` turns reports into failures of the sandbox's own."""

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
    def tried(self) -> int:
        """Problems that were run: each has one idle answer among its jobs."""
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
    "second": (toy("second", solutions=("def f(x): return x + 1", "def f(x): return 2")), "a solution fails its tests (WA)"),
    "hangs": (toy("hangs", "def f(x):\n    while True: pass"), "a solution fails its tests (TLE)"),
    "sleeps": (toy("sleeps", "import time\ndef f(x): time.sleep(60)", limits=HURRIED), "a solution fails its tests (TLE)"),
    "syntax": (toy("syntax", "def f(x) return"), "a solution fails its tests (CE)"),
    "attack": (toy("attack", ATTACK), "a solution fails its tests (RE)"),
    "leaves": (toy("leaves", "import os\ndef f(x): os._exit(0)"), "a solution fails its tests (RE)"),
    "none": (toy("none", None), "no reference solution"),
    "weak": (toy("weak", "def f(x): return None", tests=({"args": [1], "expected": None},)), "tests too weak"),
    "empty": (toy("empty", style="assert", tests=({"source": "def check(candidate): pass"},)), "tests too weak"),
    "unusable": (toy("unusable", style="assert", tests=({"source": "import nosuch\ndef check(candidate): pass"},)), "its tests cannot be run"),
    "loops": (
        toy("loops", style="assert", tests=({"source": "def check(candidate):\n    while True: pass"},), limits=HURRIED),
        "a solution fails its tests (TLE)",
    ),
    "deep": (toy("deep", tests=({"args": [deep(200)], "expected": 2},)), "a solution fails its tests (RE)"),
}  # fmt: skip


@pytest.mark.slow
def test_a_bad_problem_is_one_removed_row_and_the_others_go_on(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    problems = [toy("first"), *(problem for problem, _ in BAD.values()), toy("last")]
    verified = verify(problems, sandbox, tmp_path / "journal.jsonl")
    assert [problem.problem_id for problem in verified.kept] == ["toy/first", "toy/last"]
    assert {row.problem_id: row.reason for row in verified.removed} == {
        problem.problem_id: reason for problem, reason in BAD.values()
    }
    assert (
        verified.stage.came_in == len(problems)
        and all(row.detail for row in verified.removed)
        and verified.isolation
    )


def test_what_the_journal_knows_is_not_run_again_unless_it_changed(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    problems, journal = (
        [toy("1"), toy("2", "def f(x): return 0"), toy("3")],
        tmp_path / "journal.jsonl",
    )
    first = verify(problems, sandbox, journal)
    again = Counted(sandbox)
    assert verify(problems, again, journal) == first and again.jobs == []
    changed = [problems[0], toy("2"), problems[2]]
    assert [p.problem_id for p in verify(changed, again, journal).kept] == [
        "toy/1",
        "toy/2",
        "toy/3",
    ]
    assert again.tried == 1


def test_a_torn_last_line_is_cut_off_and_its_problem_judged_again(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    problems, journal = [toy(str(key)) for key in range(4)], tmp_path / "journal.jsonl"
    first = verify(problems, sandbox, journal)
    journal.write_bytes(journal.read_bytes()[:-7])
    again = Counted(sandbox)
    assert verify(problems, again, journal) == first and again.tried == 1
    assert (
        len({json.loads(line)["content_hash"] for line in journal.read_text().splitlines()})
        == len(journal.read_text().splitlines())
        == 4
    )


def test_a_journal_broken_elsewhere_names_the_line(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"content_hash": "x"}\n')
    with pytest.raises(ProblemError, match=r"journal\.jsonl: line 1: broken .*remove the line"):
        verify([toy()], sandbox, tmp_path / "journal.jsonl")


def test_a_failure_of_the_sandbox_is_raised_and_never_a_reason(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    problems = [toy(str(key), f"def f(x): return x + 1  # {key}") for key in range(6)]
    spoilt = Counted(sandbox, lambda job: "# 3" in job.source)
    with pytest.raises(
        NoVerdict, match=r"no verdict for 1 of 3 problems, first toy/3 \(worker lost\)"
    ):
        verify(problems, spoilt, tmp_path / "journal.jsonl", batch_size=3)
    rest = Counted(sandbox)
    assert len(verify(problems, rest, tmp_path / "journal.jsonl").kept) == 6 and rest.tried == 1


def test_progress_counts_problems_after_each_batch(sandbox: Sandbox, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    verify(
        [toy(str(key)) for key in range(5)],
        sandbox,
        tmp_path / "j",
        batch_size=2,
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_nothing_to_verify_is_nothing_verified(sandbox: Sandbox, tmp_path: Path) -> None:
    assert verify([], sandbox, tmp_path / "j") == Verified([], [])


KILLED = """
import sys
from pathlib import Path
from problems.verification.verification import verify
from sandbox.sandbox import Sandbox, SandboxConfig
from problems.schema import read_parquet
with Sandbox(SandboxConfig(workers=1)) as sandbox:
    verify(read_parquet(Path(sys.argv[1])), sandbox, Path(sys.argv[2]), batch_size=4)
"""


def forty() -> list[Problem]:
    """Every fifth is wrong; each takes a little, so that a kill finds work in flight."""
    body = "def f(x):\n    sum(range(300000))\n    return x + {}"
    return [toy(str(key), body.format(0 if key % 5 == 0 else 1)) for key in range(40)]


@pytest.mark.slow
def test_a_pass_that_is_killed_goes_on_with_at_most_one_batch_redone(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"
    write_parquet(forty(), tmp_path / "forty.parquet")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "forty.parquet"), str(journal)],
        env=environment,
    )
    while killed.poll() is None and (
        not journal.exists() or journal.read_bytes().count(b"\n") < 12
    ):
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    known = journal.read_bytes().count(b"\n")
    rest = Counted(sandbox)
    resumed = verify(forty(), rest, journal, batch_size=4)
    undisturbed = verify(forty(), sandbox, tmp_path / "other.jsonl")
    assert 12 <= known < 40 and rest.tried == 40 - known
    assert (
        set_hash(resumed.kept) == set_hash(undisturbed.kept)
        and resumed.removed == undisturbed.removed
    )
    assert len(set(journal.read_text().splitlines())) == 40


def test_what_the_references_took_is_kept_with_the_verdicts_and_proposes_limits(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    slow = toy("slow", "import time\ndef f(x):\n    time.sleep(0.6)\n    return x + 1")
    first = verify([toy("quick", "def f(x): return x + 1"), slow], sandbox, tmp_path / "journal")
    again = verify([toy("quick", "def f(x): return x + 1"), slow], sandbox, tmp_path / "journal")
    quick_row, slow_row = first.measured
    assert again.measured == first.measured
    assert (
        slow_row.wall_s >= 0.6
        and slow_row.wall_s > quick_row.wall_s
        and slow_row.proposed
        and slow_row.proposed["wall_s"] >= 5 * slow_row.wall_s
    )


def test_a_journal_from_before_times_were_kept_is_read_and_proposes_nothing(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    verify([toy("quick", "def f(x): return x + 1")], sandbox, tmp_path / "journal")
    row = json.loads((tmp_path / "journal").read_text())
    (tmp_path / "journal").write_text(
        json.dumps({key: row[key] for key in row if key not in ("wall_s", "peak_mb")}) + "\n"
    )
    found = verify([toy("quick", "def f(x): return x + 1")], sandbox, tmp_path / "journal")
    assert len(found.kept) == 1 and found.measured == ()


LAX = ({"args": [1], "expected": 2}, {"args": [1], "expected": 2})


def test_tests_that_let_broken_solutions_pass_are_weak_and_their_survivors_are_named(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """At 1 alone, `x + 1` is `x * 2`, and `2 * x` is `x + x`."""
    branchy = "def f(x):\n    if x > 5 or x == 4:\n        return x - 1\n    if x < -5:\n        return x * 3\n    return x + 1"
    strong, lax, gated, composed = (
        toy(key, branchy) for key in ("strong", "lax", "gated", "composed")
    )
    inputs = (9, 6, 5, 4, 3, 0, -5, -6, -9)
    strong = dataclasses.replace(
        strong, tests=tuple({"args": [x], "expected": branchy_value(x)} for x in inputs)
    )
    lax, gated = (
        dataclasses.replace(lax, tests=LAX),
        dataclasses.replace(gated, tests=LAX, gated=True),
    )
    composed = dataclasses.replace(composed, tests=LAX, extra={"composition": "a|b"})
    found = verify(
        [strong, lax, gated, composed], sandbox, tmp_path / "journal", Verification(mutants=8)
    )
    assert [problem.problem_id for problem in found.kept] == [
        "toy/strong",
        "toy/gated",
        "toy/composed",
    ]
    [removed] = found.removed
    of = {row.problem_id: row for row in found.strength}
    assert (
        removed.reason == "tests too weak"
        and of["toy/lax"].survivors[0] in removed.detail
        and not of["toy/lax"].kept
    )
    assert (
        of["toy/strong"].killed
        == of["toy/strong"].mutants
        == 8
        > 2 * of["toy/lax"].killed
        == 2 * of["toy/gated"].killed
    )


def branchy_value(x: int) -> int:
    return x - 1 if x > 5 or x == 4 else x * 3 if x < -5 else x + 1


STYLES = {
    "stdio": ("n = int(input())\nif n > 3:\n    n = n - 1\nprint(n * 2)", ({"stdin": "4\n", "stdout": "6\n"}, {"stdin": "3\n", "stdout": "6\n"})),
    "assert": ("def f(x): return x * 2 - 1", ({"source": "def check(candidate):\n    assert candidate(4) == 7 and candidate(1) == 1"},)),
    "unittest": (
        "def f(x): return x * 2 - 1",
        ({"source": "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f(4), 7)"},),
    ),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_strength_is_measured_in_every_style(sandbox: Sandbox, tmp_path: Path, style: Any) -> None:
    solution, tests = STYLES[style]
    problem = toy(
        "1", solution, style=style, tests=tests, entry_point=None if style == "stdio" else "f"
    )
    [row] = verify([problem], sandbox, tmp_path / "journal").strength
    assert row.mutants >= 2 and row.killed == row.mutants


def test_a_mutant_that_never_ends_is_killed_and_delays_nobody_for_long(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    endless = (
        "def f(x):\n    n = 0\n    while n != abs(x):\n        n = n + 1\n    return x + n - n + 1"
    )
    start = time.monotonic()
    [row] = verify(
        [toy("1", endless)], sandbox, tmp_path / "journal", Verification(mutants=3)
    ).strength
    assert row.mutants == 3 and row.killed >= 1 and time.monotonic() - start < 60, (
        "by their CPU time, not by the clock on each test"
    )


FLICKERING = "import os\ndef f(x): return x + 1 if os.urandom(1)[0] < 128 else x"


def test_a_verdict_that_flickers_removes_the_problem_and_shows_the_runs(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sure, unsure = toy("sure"), toy("unsure", FLICKERING)
    one = dataclasses.replace(unsure, tests=unsure.tests[:1])
    found = verify([sure, one], sandbox, tmp_path / "journal", Verification(repeats=30))
    assert [problem.problem_id for problem in found.kept] == ["toy/sure"]
    assert (
        found.removed[0].reason == "verdict flickers"
        and "AC" in found.removed[0].detail
        and "WA" in found.removed[0].detail
    )


def test_demonstrations_judge_nobody_so_their_tests_are_not_tried(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    counted = Counted(sandbox)
    found = verify([toy("1", split="demonstrations")], counted, tmp_path / "journal")
    assert (
        len(found.kept) == 1
        and found.strength == ()
        and [job.source for job in counted.jobs] == list(toy().solutions)
    )


def test_other_rules_are_another_verification_and_the_first_still_holds(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    first = verify([toy()], sandbox, journal)
    (tmp_path / "journal").write_text(
        '{"content_hash": "x", "problem_id": "y", "reason": null, "detail": "", "isolation": ""}\n'
        + journal.read_text()
    )
    second, again = verify([toy()], sandbox, journal, Verification(mutants=1)), Counted(sandbox)
    assert second.strength[0].mutants == 1 < first.strength[0].mutants
    assert verify([toy()], again, journal) == first and again.jobs == []
