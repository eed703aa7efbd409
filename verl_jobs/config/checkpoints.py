"""When a training stops early, and which of its checkpoints stay on disk."""

from __future__ import annotations

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt

from artifacts.section import Section


class StopSettings(Section):
    """When a training stops before its last step; its best checkpoint is kept.

    A loss or reward that is not a number always stops it, and so does a growing gap between visible
    and hidden tests (verl_jobs/trainer/early_stop.py).
    """

    model_config = ConfigDict(allow_inf_nan=False)

    kl: PositiveFloat = 0.5
    """Maximum KL in nats a token, mean of three steps. It applies to the KL of the update, and to
    the KL to the start policy if a KL coefficient has it measured.
    """
    entropy: float = Field(0.1, ge=0, lt=1)
    """Share of the first steps' entropy below which the policy counts as collapsed; 0: never."""
    patience: NonNegativeInt = 10
    """Validations without a new best before the training stops; 0: never stop for lack of progress.
    """


class Keep(Section):
    """Which checkpoints stay on disk: saves to resume from, and candidates to choose from."""

    model_config = ConfigDict(allow_inf_nan=False)

    last: int = Field(2, ge=2)
    """Number of newest saves: one to resume from, and at least one earlier in case that is damaged.
    """
    best: PositiveInt = 1
    """Number of saves with the best validation scores; the run's result is the best of them."""
    every: NonNegativeInt = 0
    """Also keep each save whose step is a multiple of this; 0: none."""
