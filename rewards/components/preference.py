"""Pay a completion as people chose between it and others (rewards/preference.py)."""

from __future__ import annotations

from rewards.components.component import Component, RewardedProgram


def preference(program: RewardedProgram) -> float | None:
    """Return the completion's value from people's choices, or None if nobody was shown it."""
    if program.preferences is None:
        return None
    return program.preferences.value(program.task.problem_id, program.completion)


COMPONENT = Component(
    "People's choices, for the completions that they were shown (`preferences`).",
    preference,
    order=5,
)
