"""The third round of the shared corpus: each of its files has the right outcome.

The corpus is stored beside the repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rewards.battery.battery import run_battery
from rewards.extraction import extract_answer
from rewards.lint import lint
from rewards.mathematics.verifier import Case, Verifier
from rewards.own import OwnReward
from sandbox.protocol import CallTest, Job, StdioTest, Verdict
from sandbox.sandbox import Sandbox, run_all

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("RATCHET_HOSTILE", ROOT.parent / "shared" / "hostile")) / "round3"
pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"no {CORPUS}: set RATCHET_HOSTILE to the folder that holds round3"
)


def text(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8")


def answers_of(lines: str) -> list[dict[str, Any]]:
    """Return the answers of `ratchet judge`, which answers every line."""
    judge = subprocess.run(
        [sys.executable, "-m", "cli.main", "judge"],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=200,
    )
    return [json.loads(line) for line in judge.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_wrong_line_costs_no_other_line_its_answer() -> None:
    good, bad, _ = text("cli_crash.jsonl").splitlines()
    problem = json.loads(good)["problem"] | {"style": "unittest", "tests": [5]}
    number = json.dumps({"id": "number", "source": "f = abs", "problem": problem})
    answers = answers_of("\n".join([good, bad, number, good]))
    verdicts = {answer["id"]: answer["verdict"] for answer in answers}
    assert verdicts == {"good": "AC", "bad": "INVALID", "number": "INVALID"}
    assert [answer["id"] for answer in answers] == ["good", "bad", "number", "good"]


def test_a_changed_argument_does_not_choose_its_expected_value(sandbox: Sandbox) -> None:
    record = json.loads(text("null_answer_for_cleared_argument.json"))
    [report] = run_all(sandbox, [Job.read(record)])
    assert report.verdict is Verdict.WA


HONEST: dict[str, tuple[str, CallTest | StdioTest]] = {
    "honest_bom.py": ("call", CallTest((1,), {}, 1)),
    "honest_getsource.py": ("stdio", StdioTest("", "def g(): return 1\n")),
}


@pytest.mark.parametrize("name", HONEST)
def test_a_program_runs_as_a_file(sandbox: Sandbox, name: str) -> None:
    style, test = HONEST[name]
    [report] = run_all(sandbox, [Job("job", text(name), style, (test,), "f")])
    assert report.verdict is Verdict.AC, report


@pytest.mark.slow
def test_a_ratio_of_zeros_equals_no_ratio() -> None:
    [[statement, reference, completion, verdict]] = json.loads(text("math_zero_ratio.json"))
    answer = extract_answer(completion)
    assert answer is not None
    verifier = Verifier(1)
    try:
        verdicts = verifier.equal_all([Case((reference,), answer, statement)])
    finally:
        verifier.close()
    assert verdicts == [verdict == "AC"]


def test_a_program_in_a_text_is_reported() -> None:
    [findings] = lint([text("style_exec.py")])
    assert findings
    assert findings.runs_text


@pytest.mark.soak
def test_a_reward_that_pays_on_long_statements_fails_the_battery(sandbox: Sandbox) -> None:
    result = run_battery(OwnReward(CORPUS / "long_statements.py"), sandbox)
    assert not result.passed
