"""Which problems a step of a training selects."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, PositiveFloat

from artifacts.section import Section


class Curriculum(Section):
    """Which problems a step selects, by the current policy's pass rate.

    The dataset's weights count too (verl_jobs/curriculum/curriculum.py).
    """

    model_config = ConfigDict(allow_inf_nan=False)

    schedule: Literal["uniform", "weighted", "window", "mixed", "competence", "reverse"] = "uniform"
    """`uniform`: all in turn, shuffled by verl. `weighted`: by the dataset's weights only.
    `window`: near the target. `mixed`: half of them near the target. `competence`: the easiest
    first, then gradually more; all after half of the steps. `reverse`: the hardest first.
    """
    target: float = Field(0.5, gt=0, lt=1)
    """Pass rate near which `window` and `mixed` select problems."""
    width: PositiveFloat = 0.2
    """Distance from the target at which a problem is selected 0.6 times as often; at twice the
    distance: 0.14 times.
    """
    half_life: PositiveFloat = 10.0
    """Steps after which a completion counts half in its problem's pass rate, because the policy has
    changed since.
    """
