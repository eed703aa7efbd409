"""Published problems: each reference solution is accepted, and returning nothing solves none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from problems.sources.registry import load
from problems.verification.problem_check import idle_answer
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, run_all

DATA = Path(
    os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data")
)


FILES = {
    "humaneval": "humaneval/HumanEval.jsonl.gz",
    "mbpp": "mbpp/mbpp.jsonl",
    "humanevalplus": "humanevalplus/HumanEvalPlus.jsonl.gz",
    "mbppplus": "mbppplus/MbppPlus.jsonl.gz",
    "leetcode": "leetcode/LeetCodeDataset-v0.3.1-test.jsonl.gz",
}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("source", "every"),
    [("humaneval", 4), ("mbpp", 12), ("humanevalplus", 24), ("mbppplus", 24), ("leetcode", 24)],
)
def test_references_pass_and_idle_programs_fail(sandbox: Sandbox, source: str, every: int) -> None:
    decide(sandbox, source, every)


@pytest.mark.soak
@pytest.mark.parametrize("source", FILES)
def test_all_references_pass_and_idle_programs_fail(sandbox: Sandbox, source: str) -> None:
    decide(sandbox, source)


def decide(sandbox: Sandbox, source: str, every: int = 1) -> None:
    if not (DATA / FILES[source]).exists():
        pytest.skip(f"no {DATA / FILES[source]}: set RATCHET_DATA to the folder that holds it")
    problems = load(source, DATA / FILES[source]).problems[::every]
    own = run_all(
        sandbox, [problem.job(problem.solutions[0], problem.problem_id) for problem in problems]
    )
    assert {
        report.job_id for report in own if (report.verdict, report.trust) != (Verdict.AC, "apart")
    } == set()
    idle = run_all(
        sandbox, [problem.job(idle_answer(problem), problem.problem_id) for problem in problems]
    )
    assert {report.verdict for report in idle} == {Verdict.WA}
