"""Judge completions: the sandbox runs programs in one batch, the verifier mathematics in another.

In: (task, completion). Out: a report for each, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from problems.schema import Problem
from rewards.extraction import extract_answer
from rewards.facts import exact
from rewards.mathematics.verifier import Case, Verifier
from rewards.question import Question, RewardTask
from rewards.starter import program_of
from sandbox.protocol import Report, TestResult, Verdict
from sandbox.sandbox import Sandbox, run_all


@dataclass(frozen=True)
class Judged:
    """A completion with its report. `step` is the training step, for a schedule."""

    task: RewardTask
    completion: str
    report: Report
    step: int = 0


def judge(
    sandbox: Sandbox | None, pairs: Sequence[tuple[RewardTask, str]], step: int = 0
) -> list[Judged]:
    """Return the verdicts of a batch, in its order.

    Raises ValueError for a program without a sandbox, and for a question whose reference answer
    cannot be read.
    """
    programs = [
        (at, task, completion)
        for at, (task, completion) in enumerate(pairs)
        if isinstance(task, Problem)
    ]
    if programs and sandbox is None:
        raise ValueError(f"problem {programs[0][1].problem_id}: give a sandbox to judge a program")
    jobs = [
        task.job(program_of(task, completion), f"{task.problem_id}#{at}")
        for at, task, completion in programs
    ]
    reports = dict(
        zip((at for at, *_ in programs), run_all(sandbox, jobs) if sandbox else (), strict=True)
    )
    questions = [
        (at, task, completion)
        for at, (task, completion) in enumerate(pairs)
        if isinstance(task, Question)
    ]
    reports |= dict(
        zip(
            (at for at, *_ in questions),
            judge_questions([(task, completion) for _, task, completion in questions]),
            strict=True,
        )
    )
    return [
        Judged(task, completion, reports[at], step) for at, (task, completion) in enumerate(pairs)
    ]


def judge_questions(pairs: Sequence[tuple[Question, str]]) -> list[Report]:
    """Return reports of one test each, in order. Mathematics is verified all at once.

    A report is INFRA only where the verifier gave no verdict.
    """
    answers = [extract_answer(completion) for _, completion in pairs]
    cases = [
        Case(question.answers, answer, question.statement, question.form == "any")
        for (question, _), answer in zip(pairs, answers, strict=True)
        if question.task == "math"
    ]
    verdicts = iter(verifier().equal_all(cases))
    return [
        _report(
            question,
            answer,
            next(verdicts) if question.task == "math" else exact(question.answers, answer),
        )
        for (question, _), answer in zip(pairs, answers, strict=True)
    ]


def _report(question: Question, answer: str, right: bool | None) -> Report:
    """Return the report of one answer. right: None for no verdict."""
    if right is None:
        error = "the mathematics verifier gave no verdict: it was lost, or the batch took too long"
        return Report(
            question.question_id, Verdict.INFRA, (TestResult(Verdict.INFRA, error),), detail=error
        )
    verdict = Verdict.AC if right else Verdict.WA
    return Report(question.question_id, verdict, (TestResult(verdict, answer[:200]),))


@cache
def verifier() -> Verifier:
    return Verifier()
