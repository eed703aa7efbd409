"""A fault of a row is found by its check, and a sound row has none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from problems.schema import Problem
from problems.sources.registry import load
from rewards.audit.attempts import right_programs, wrong_programs
from rewards.audit.findings import CHECKS, LEAK, NOTHING, OTHERS, REPEATS, SOLUTION, WRONG
from rewards.audit.leaks import row_leak
from rewards.audit.rows import audit_rows
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

SOUND = next(each for each in load("simple").problems if each.problem_id.endswith("alarm_count"))
SHORT = next(each for each in load("simple").problems if each.problem_id.endswith("frame_sum"))
SUM = "def total(xs):\n    value = 0.0\n    for x in xs:\n        value += x\n    return value\n"


def failed(problem: Problem, sandbox: Sandbox) -> set[str]:
    [task] = audit_rows([problem], sandbox)
    return {finding.check_id for finding in task.findings if finding.status == "fail"}


def checker(body: str) -> Problem:
    return replace(
        SOUND, checker=f"import random\n\n\ndef check(args, got, expected):\n    {body}\n"
    )


@pytest.mark.slow
def test_a_sound_row_passes_every_check(sandbox: Sandbox) -> None:
    [task] = audit_rows([SOUND], sandbox)
    assert {finding.check_id: finding.status for finding in task.findings} == dict.fromkeys(
        (each.check_id for each in task.findings), "pass"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "checks"),
    [
        (replace(SOUND, tests=(SOUND.tests[0] | {"expected": 99}, *SOUND.tests[1:])), {SOLUTION}),
        (checker("return True"), {NOTHING}),
        (checker("return type(got) is type(expected)"), {WRONG}),
        # refused at once, or in a further run
        (checker("return got == expected and random.random() < 0.5"), {SOLUTION, REPEATS}),
        (replace(SOUND, statement=f"{SOUND.statement} Return any of them."), {OTHERS}),
    ],
    ids=["wrong value", "accepts all", "compares types", "draws", "any answer"],
)
def test_a_fault_fails_its_check(problem: Problem, checks: set[str], sandbox: Sandbox) -> None:
    assert failed(problem, sandbox) & checks


def test_a_sum_compared_exactly_refuses_another_order_of_additions(sandbox: Sandbox) -> None:
    test = {"args": [[0.1, 0.2, 0.3]], "kwargs": {}, "expected": 0.1 + 0.2 + 0.3}
    exact = replace(SOUND, tests=(test,), solutions=(SUM,), entry_point="total", visible_tests=0)
    for problem, verdict in ((exact, Verdict.WA), (replace(exact, tolerance=1e-9), Verdict.AC)):
        programs = dict(right_programs(exact))
        job = problem.job(programs["a result that differs in its last digit"], "one")
        assert [report.verdict for report in sandbox.run([job])] == [verdict]


def test_no_wrong_program_passes_sound_tests(sandbox: Sandbox) -> None:
    jobs = [SOUND.job(source, name) for name, source in wrong_programs(SOUND)]
    assert [report.job_id for report in sandbox.run(jobs) if report.verdict is Verdict.AC] == []


@pytest.mark.parametrize("solution", ["class alarm_count:\n    pass\n", "alarm_count = max\n", "("])
def test_programs_are_made_for_a_solution_that_is_no_function(solution: str) -> None:
    problem = replace(SOUND, solutions=(solution,))
    assert list(wrong_programs(problem))
    assert not [name for name, _ in right_programs(problem) if "behind" in name]


@pytest.mark.parametrize(
    "problem",
    [
        replace(SOUND, statement=f"{SOUND.statement}\n# hint\n{SOUND.solutions[1]}"),
        replace(SOUND, starter_code=SOUND.solutions[0]),
        replace(
            SOUND,
            statement="\n".join(f"({test['args']}) -> {test['expected']}" for test in SOUND.tests),
            visible_tests=2,
        ),
        replace(SHORT, statement=SHORT.statement + SHORT.solutions[1]),
        replace(
            SHORT,
            statement="\n".join(
                f"frame_sum({test['args'][0]}) == {test['expected']}" for test in SHORT.tests
            ),
        ),
    ],
    ids=["statement", "starter", "answers", "layout of a line", "short answers"],
)
def test_an_answer_in_the_row_is_found(problem: Problem) -> None:
    assert LEAK in CHECKS
    assert row_leak(problem)


def test_a_statement_with_the_visible_tests_gives_nothing_away() -> None:
    test = SOUND.tests[0]
    shown = f"{SOUND.statement} alarm_count({test['args']}) == {test['expected']}"
    assert row_leak(replace(SOUND, statement=shown)) == ""
