"""Demonstrations of corrections, for the warm-up.

Each has a flawed program, the Executor's report on it, and a correct program.
"""

from __future__ import annotations

from collections.abc import Sequence

from problems.demonstrations import demonstration
from problems.prompt import prompt_text
from problems.schema import Problem
from verl_jobs.agents.conversation import Message, begin, correction_request
from verl_jobs.agents.play import Reports


def corrections(problems: Sequence[Problem], executor: Reports) -> list[tuple[list[Message], str]]:
    """Return a correction for each demonstration that fails a visible test.

    A correction is (conversation so far, correct program). Raises KeyError for a problem without a
    demonstration.
    """
    conversations = [
        begin(problem, [{"role": "user", "content": prompt_text(problem)}]) for problem in problems
    ]
    for conversation, problem in zip(conversations, problems, strict=True):
        conversation.messages.append({"role": "assistant", "content": demonstration(problem)})
    rows = []
    for conversation, problem, finding in zip(
        conversations,
        problems,
        executor.findings(conversations) if conversations else [],
        strict=True,
    ):
        if finding.total and not finding.solved:
            conversation.add_attempt(finding)
            conversation.add_request(correction_request(finding))
            rows.append((conversation.messages, problem.solutions[0]))
    return rows
