"""The settings of the embedded family of problems."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveInt

from artifacts.section import Section


class FamilyConfig(Section):
    """How many problems of the embedded family are generated."""

    seed: NonNegativeInt = 1
    """Seed of all random choices."""
    demonstrations: PositiveInt = 6000
    """Problems whose demonstrations warm up the model."""
    train: PositiveInt = 1200
    """Problems for reinforcement learning."""
    validation: PositiveInt = 128
    """Problems that choose the checkpoint; never used for gates."""
    visible_tests: int = Field(0, ge=0, le=3)
    """Tests that a statement shows. Conversations (`training.agents`) need at least one. A longer
    prompt needs more `training.prompt_tokens`.
    """
    slip_rate: float = Field(0.55, ge=0, le=1)
    """Share of the operations with a known slip that a demonstration gets wrong."""
