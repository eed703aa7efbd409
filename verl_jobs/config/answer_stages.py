"""Stages of a training with shorter completions: a length curriculum."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import PositiveInt

from artifacts.section import Section


class AnswerStage(Section):
    """Steps at the start of a training, after the stage before, with a shorter maximum."""

    until: PositiveInt
    """Last step of the stage."""
    tokens: PositiveInt
    """Maximum tokens of a completion in these steps."""


def stages_error(stages: Sequence[AnswerStage], answer_tokens: int, steps: int) -> str:
    """Return which stage does not fit between the others, with the fix. Empty if all fit."""
    for at, stage in enumerate(stages):
        until, tokens = (stages[at - 1].until, stages[at - 1].tokens) if at else (0, 0)
        if not until < stage.until < steps:
            return (
                f"answer_stages[{at}].until must be above {until} and below steps ({steps}), got "
                f"{stage.until}: stages are in order, and the steps after the last one have "
                "answer_tokens"
            )
        if not tokens < stage.tokens < answer_tokens:
            return (
                f"answer_stages[{at}].tokens must be above {tokens} and below answer_tokens "
                f"({answer_tokens}), got {stage.tokens}: the maximum grows from stage to stage"
            )
    return ""
