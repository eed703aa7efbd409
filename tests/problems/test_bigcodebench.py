"""BigCodeBench: both prompts, per-method results, and no verdict without its packages."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from problems.schema import Problem
from problems.sources.bigcodebench import instructed
from problems.sources.registry import load
from problems.verification.journal import ABSENT
from problems.verification.problem_check import idle_answer
from problems.verification.verification import verify
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, run_all

ROW = {
    "task_id": "BigCodeBench/7",
    "complete_prompt": 'import json\ndef task_func(x):\n    """Double it."""\n',
    "instruct_prompt": "Double it. Start with:\n```\nimport json\ndef task_func(x):\n```",
    "code_prompt": "import json\ndef task_func(x):\n",
    "canonical_solution": "    return 2 * x\n",
    "test": "import unittest\nclass TestCases(unittest.TestCase):\n    def test_two(self):\n"
    "        self.assertEqual(task_func(2), 4)\n"
    "    def test_none(self):\n        self.assertEqual(task_func(0), 0)\n",
    "entry_point": "task_func",
    "libs": "['json']",
}
NEEDY = ROW | {
    "task_id": "BigCodeBench/8",
    "test": "import nosuch.part\nfrom faker import Faker\n" + ROW["test"],
    "canonical_solution": "    return 3 * x\n",
}


@pytest.fixture
def two(tmp_path: Path) -> list[Problem]:
    with gzip.open(tmp_path / "BigCodeBench.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, (ROW, NEEDY))))
    loaded = load("bigcodebench", tmp_path)
    assert loaded.rejected == []
    return loaded.problems


def test_a_task_keeps_both_prompts(two: list[Problem]) -> None:
    complete, other = two[0], instructed(two[0])
    assert (complete.statement, complete.starter_code) == (
        "Double it.",
        ROW["complete_prompt"],
    )
    assert complete.gated
    assert (other.statement, other.starter_code) == (
        ROW["instruct_prompt"],
        "",
    )
    assert other.tests == complete.tests


def test_each_test_method_has_its_own_result(sandbox: Sandbox, two: list[Problem]) -> None:
    (half,) = run_all(sandbox, [two[0].job("def task_func(x): return 4", "half")])
    assert {test.name: test.verdict.value for test in half.tests} == {
        "TestCases.test_two": "AC",
        "TestCases.test_none": "WA",
    }
    assert (half.verdict, half.trust) == (Verdict.WA, "shared")


def test_a_task_with_missing_packages_is_removed_but_not_journalled(
    sandbox: Sandbox, two: list[Problem], tmp_path: Path
) -> None:
    for _ in range(2):
        verified = verify(two, sandbox, tmp_path / "journal.jsonl")
        assert [problem.problem_id for problem in verified.problems] == ["bigcodebench/7"]
        assert [removed.reason for removed in verified.removed] == [f"{ABSENT}faker, nosuch"]
        assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 1


def test_programs_for_a_task_with_missing_packages_get_no_verdict(
    sandbox: Sandbox, two: list[Problem]
) -> None:
    reports = run_all(
        sandbox,
        [
            two[1].job(source, "job")
            for source in (
                "def task_func(x): return 2 * x",
                "def task_func(",
                "import os; os._exit(0)",
            )
        ],
    )
    assert {(report.verdict, report.unusable, report.absent) for report in reports} == {
        (Verdict.INFRA, True, ("faker", "nosuch"))
    }


@pytest.mark.slow
def test_the_real_set_loads_completely(data: Callable[[str], Path]) -> None:
    loaded = load("bigcodebench", data("bigcodebench"))
    assert len(loaded.problems) == 1140
    assert loaded.rejected == []
    assert all(problem.gated for problem in loaded.problems)
    about = [problem for problem in loaded.problems if about_the_library_alone(problem)]
    assert (len(about), sum(not problem.packages for problem in about)) == (327, 300)


@pytest.mark.slow
def test_sampled_references_pass_and_idle_programs_fail(
    data: Callable[[str], Path], sandbox: Sandbox
) -> None:
    decide(sandbox, data("bigcodebench"), first=1, every=20)


@pytest.mark.soak
def test_all_references_pass_and_idle_programs_fail(
    data: Callable[[str], Path], sandbox: Sandbox
) -> None:
    decide(sandbox, data("bigcodebench"))


def about_the_library_alone(problem: Problem) -> bool:
    return all(name.partition(".")[0] in sys.stdlib_module_names for name in problem.extra["libs"])


def decide(sandbox: Sandbox, folder: Path, first: int = 0, every: int = 1) -> None:
    problems = [
        problem
        for problem in load("bigcodebench", folder).problems
        if about_the_library_alone(problem)
    ][first::every]
    own = run_all(
        sandbox, [problem.job(problem.solutions[0], problem.problem_id) for problem in problems]
    )
    refused = {
        report.job_id for report in own if report.verdict is not Verdict.AC and not report.absent
    }
    assert refused - REFUSED == set()
    idle = run_all(
        sandbox, [problem.job(idle_answer(problem), problem.problem_id) for problem in problems]
    )
    assert {report.job_id for report in idle if report.verdict is Verdict.AC} == set()


REFUSED = {  # references that fail a method here, with the reason
    *(
        f"bigcodebench/{task}" for task in (147, 176, 314, 1005, 1038, 1040)
    ),  # they open sockets or resolve names
    "bigcodebench/365",  # its second method depends on the first
    "bigcodebench/459",  # it executes a script in the scratch folder
    "bigcodebench/541",  # it counts folders of numpy 1
    "bigcodebench/562",  # it runs pip
    "bigcodebench/1028",  # it reads the third line of top
}
