"""Tasks whose own reference fails, or that accept several answers, are left out by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import Benchmark, from_problems
from evaluation.evaluate import fit
from evaluation.judging.by_problem import ProblemHarness, by_problem
from evaluation.judging.references import leave_out_unfit
from evaluation.judging.reports import NotJudged, NotMeasurable
from evaluation.sampling import Sampling
from problems.schema import Problem
from sandbox.protocol import Job, Report, Verdict
from sandbox.sandbox import Sandbox


def task(name: str, source: str = "def f(x): return x + 1", words: str = "Add one.") -> Problem:
    tests = ({"args": [1], "expected": 2},)
    solutions = (source,) if source else ()
    return Problem(f"own/{name}", "own", words, "call", tests, entry_point="f", solutions=solutions)


CHECKER = "def check(stdin, output, expected): raise OSError"
PROBLEMS = (
    replace(
        task("broken", "print(2)"),
        style="stdio",
        tests=({"stdin": "", "stdout": "2"},),
        entry_point=None,
        checker=CHECKER,
    ),
    task("fails", "def f(x): return x"),
    task("open", "", "Add one. If there are several answers, return any of them."),
    task("right"),
    task("unknown", ""),
)


class Broken:
    """A sandbox that never reaches a verdict."""

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterator[Report]:
        for job in jobs:
            yield Report(job.job_id, Verdict.INFRA, (), detail="worker gone")


def unopened() -> AbstractContextManager[Any]:
    raise AssertionError("the sandbox is not needed")


def harness() -> ProblemHarness:
    return by_problem("own", PROBLEMS)


def test_the_tasks_that_cannot_be_measured_are_named_with_the_reason(sandbox: Sandbox) -> None:
    own = harness()
    unfit = leave_out_unfit(own, own.tasks, lambda: nullcontext(sandbox), None)
    assert list(unfit) == ["own/open", "own/broken", "own/fails"]
    assert "its own reference fails (WA)" in unfit["own/fails"]
    assert "If there are several answers" in unfit["own/open"]
    assert own.absent(own.tasks["own/fails"]) == unfit["own/fails"]
    assert own.absent(own.tasks["own/right"]) == ""


@pytest.mark.parametrize(
    ("others", "named"),
    [
        (["x + 2"], "one passes, another fails (WA) got 3"),
        (["x + 2", "1 + x"], ""),  # two agree
        (["1 / 0"], ""),  # not of this Python, or too slow
    ],
)
def test_a_task_whose_references_disagree_is_named(
    others: list[str], named: str, sandbox: Sandbox
) -> None:
    sources = tuple(f"def f(x): return {value}" for value in ("x + 1", *others))
    own = by_problem("own", [replace(task("open"), solutions=sources)])
    unfit = leave_out_unfit(own, own.tasks, lambda: nullcontext(sandbox), None)
    assert named in unfit.get("own/open", "")
    assert bool(named) is bool(unfit)


def test_references_run_once_for_one_content(sandbox: Sandbox, tmp_path: Path) -> None:
    first = leave_out_unfit(harness(), harness().tasks, lambda: nullcontext(sandbox), tmp_path)
    assert leave_out_unfit(harness(), harness().tasks, unopened, tmp_path) == first
    changed = by_problem("own", [replace(PROBLEMS[3], statement="Another."), *PROBLEMS[:3]])
    with pytest.raises(AssertionError, match="not needed"):
        leave_out_unfit(changed, changed.tasks, unopened, tmp_path)


class Stopped:
    """A sandbox whose run is stopped after some reports."""

    def __init__(self, sandbox: Sandbox, after: int) -> None:
        self.sandbox, self.after = sandbox, after

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterator[Report]:
        for done, job in enumerate(jobs):
            if done == self.after:
                raise KeyboardInterrupt
            yield from self.sandbox.run([job], repeat)


def test_a_run_that_was_stopped_continues(sandbox: Sandbox, tmp_path: Path) -> None:
    tasks = harness().tasks
    with pytest.raises(KeyboardInterrupt):
        leave_out_unfit(harness(), tasks, lambda: nullcontext(Stopped(sandbox, 2)), tmp_path)
    rest = Stopped(sandbox, 1)  # of three references
    unfit = leave_out_unfit(harness(), tasks, lambda: nullcontext(rest), tmp_path)
    assert len(unfit) == 3


def test_a_failure_of_the_sandbox_is_no_fault_of_a_task(tmp_path: Path) -> None:
    own = harness()
    with pytest.raises(NotJudged):
        leave_out_unfit(own, own.tasks, lambda: nullcontext(Broken()), tmp_path)
    assert own.unfit == {}


def published(problems: tuple[Problem, ...]) -> Benchmark:
    return from_problems("own", problems, Sampling(), harness=by_problem("own", problems))


def test_a_published_benchmark_is_scored_without_them(sandbox: Sandbox) -> None:
    benchmark, unfit = fit(published(PROBLEMS), sandbox, None, lambda step, done, total: None)
    assert [each.problem_id for each in benchmark.problems] == ["own/right", "own/unknown"]
    assert len(unfit) == 3


def test_without_a_task_there_is_no_score(sandbox: Sandbox) -> None:
    with pytest.raises(NotMeasurable, match="none of its 3 tasks"):
        fit(published(PROBLEMS[:3]), sandbox, None, lambda step, done, total: None)
