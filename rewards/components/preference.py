"""Pay a completion as people chose between it and others (rewards/preference.py)."""

from __future__ import annotations

from rewards.components.component import Component, RewardedProgram
from sandbox.protocol import Verdict


def preference(program: RewardedProgram) -> float | None:
    """Return the completion's value from people's choices; None if nothing is known of it.

    If nobody was shown it, the head values it, and only if it is accepted: its text says nothing of
    the tests.
    """
    if program.preferences is None:
        return None
    shown = program.preferences.value(program.task.problem_id, program.completion)
    if shown is not None or program.report.verdict is not Verdict.AC:
        return shown
    head = program.preferences.head
    return head.value(program.code) if head else None


COMPONENT = Component(
    "People's choices (`preferences`): of the completions that they were shown, and predicted for "
    "other accepted programs.",
    preference,
    order=5,
)
