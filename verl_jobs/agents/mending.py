"""Demonstrations of corrections, for the warm-up.

Each has a flawed program, the Executor's report on it, and a correct program.
"""

from __future__ import annotations

from collections.abc import Sequence

from problems.dataset.rl_parquet import prompt_text
from problems.schema import Problem
from problems.sources.compositional import demonstration
from verl_jobs.agents.conversation import Attempt, Message, begin, mend_request
from verl_jobs.agents.play import Reports


def mends(problems: Sequence[Problem], executor: Reports) -> list[tuple[list[Message], str]]:
    """Return a correction for each demonstration that fails a visible test.

    A correction is (conversation so far, correct program). Raises KeyError for a problem without a
    demonstration.
    """
    talks = [
        begin(problem, [{"role": "user", "content": prompt_text(problem)}]) for problem in problems
    ]
    for talk, problem in zip(talks, problems, strict=True):
        talk.messages.append({"role": "assistant", "content": demonstration(problem)})
    made = []
    for talk, problem, finding in zip(
        talks, problems, executor.findings(talks) if talks else [], strict=True
    ):
        if finding.total and not finding.solved:
            talk.attempts.append(Attempt(talk.messages[-1]["content"], finding))
            talk.hear(mend_request(finding))
            made.append((talk.messages, problem.solutions[0]))
    return made
