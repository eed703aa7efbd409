"""Published problems: every reference solution is accepted, and none is solved by returning nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from problems.sources.registry import load
from problems.verification import idle_answer
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, run_all

DATA = Path(os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))


@pytest.mark.slow
@pytest.mark.parametrize(("source", "file"), [("humaneval", "humaneval/HumanEval.jsonl.gz"), ("mbpp", "mbpp/mbpp.jsonl")])
def test_references_are_accepted_and_nothing_is_not(sandbox: Sandbox, source: str, file: str) -> None:
    if not (DATA / file).exists():
        pytest.skip(f"no {DATA / file}: set RATCHET_DATA to the folder that holds it")
    problems = load(source, DATA / file).problems
    own = run_all(sandbox, [problem.job(problem.solutions[0], problem.problem_id) for problem in problems])
    assert {report.job_id for report in own if (report.verdict, report.trust) != (Verdict.AC, "apart")} == set()
    idle = run_all(sandbox, [problem.job(idle_answer(problem), problem.problem_id) for problem in problems])
    assert {report.verdict for report in idle} == {Verdict.WA}
