"""From answers to verdicts: programs go to the sandbox in one batch, statements to their verifier.

In: (task, answer). Out: a report each, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from problems.schema import Problem
from rewards.extraction import extract_answer, extract_code
from rewards.facts import exact
from rewards.mathematics import Verifier, VerifierDied
from rewards.question import Question, Task
from sandbox.protocol import Report, TestResult, Verdict
from sandbox.sandbox import Sandbox, run_all


@dataclass(frozen=True)
class Judged:
    """An answer with its verdict. `step` is that of training, for a schedule."""

    task: Task
    answer: str
    report: Report
    step: int = 0


def judge(sandbox: Sandbox | None, pairs: Sequence[tuple[Task, str]], step: int = 0) -> list[Judged]:
    """Verdicts of a batch, in its order. Raises ValueError for a program without a sandbox, and for a question whose right answer cannot be read."""
    programs = [(at, task, answer) for at, (task, answer) in enumerate(pairs) if isinstance(task, Problem)]
    if programs and sandbox is None:
        raise ValueError(f"{programs[0][1].problem_id}: a program needs a sandbox")
    jobs = [task.job(extract_code(answer), f"{task.problem_id}#{at}") for at, task, answer in programs]
    reports = dict(zip((at for at, *_ in programs), run_all(sandbox, jobs) if sandbox else (), strict=True))
    return [
        Judged(task, answer, reports[at] if isinstance(task, Problem) else judge_question(task, answer), step)
        for at, (task, answer) in enumerate(pairs)
    ]


def judge_question(question: Question, answer: str) -> Report:
    """A report of one test. INFRA only where the verifier's process was lost."""
    given = extract_answer(answer)
    try:
        right = exact(question.answers, given) if question.task == "qa" else verifier().equal(question.answers, given)
    except VerifierDied as error:
        return Report(question.question_id, Verdict.INFRA, (TestResult(Verdict.INFRA, str(error)),), detail=str(error))
    verdict = Verdict.AC if right else Verdict.WA
    return Report(question.question_id, verdict, (TestResult(verdict, given[:200]),))


@cache
def verifier() -> Verifier:
    return Verifier()
