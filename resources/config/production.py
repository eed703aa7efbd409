"""Settings of the way from failures in production to training problems."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from artifacts.section import Section


class Production(Section):
    """What becomes of requests whose tests no answer passed. Only those of API keys that consent
    are kept (`ratchet keys add --consent`).
    """

    a_day: NonNegativeInt = 20
    """Most requests of a key that are kept in 24 hours."""
    max_tasks: PositiveInt = 10_000
    """Most requests that are kept in a home."""
    kib: PositiveFloat = 32.0
    """Largest request that is kept: statement and tests."""
    share: float = Field(0.05, ge=0, lt=1)
    """Largest share of a training's problems that come from production."""
    baseline: PositiveInt = 500
    """First verified answers of the deployed version, which its later ones are compared with."""
    fall: float = Field(0.05, gt=0, lt=1)
    """Fall of the share of verified answers that pass, above which a retraining starts."""
