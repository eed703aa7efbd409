"""Prices and the budget: the section `cost` of the settings."""

from __future__ import annotations

from pydantic import Field, NonNegativeFloat

from artifacts.section import Section


class Cost(Section):
    """What runs cost, in the currency of `price_per_hour`, which is added for each hour of a run. 0
    for what is not paid for by use.
    """

    gpu_hour: NonNegativeFloat = 0.0
    """Price of a GPU for an hour; a training's ranks and its engine's GPUs count, and those
    of the engine that generates completions for scores."""
    cpu_hour: NonNegativeFloat = 0.0
    """Price of a core for an hour; all cores of the run's machine count."""
    gib_hour: NonNegativeFloat = 0.0
    """Price of a GiB of memory for an hour; a run's peak counts, else its machine's memory."""
    gib_month: NonNegativeFloat = 0.0
    """Price of a GiB of storage for 30 days; a run's folder and its checkpoint count."""
    budget: NonNegativeFloat = 0.0
    """Limit of a calendar month (UTC). When it is spent, a running training is ended after a save,
    and no training starts until the next month. 0: none.
    """
    warn_at: float = Field(0.8, gt=0, le=1)
    """Share of the budget from which people are warned."""
