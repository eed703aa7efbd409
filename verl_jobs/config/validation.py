"""How the validation problems that choose a checkpoint are sampled."""

from __future__ import annotations

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from artifacts.section import Section

SOURCE = "validation"  # verl's data source of the validation problems
SCORE = f"val-core/{SOURCE}/acc/mean@"


class Validation(Section):
    """Completions of each validation problem. The score is the mean over all of them."""

    n: PositiveInt = 1
    """Completions per problem."""
    temperature: NonNegativeFloat = 0.0
    """Sampling temperature; 0: greedy."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Share of the probability that tokens are sampled from."""

    @model_validator(mode="after")
    def check_sampled(self) -> Validation:
        if self.n > 1 and not self.temperature:
            raise ValueError(
                f"{self.n} greedy completions of a problem are equal: set a temperature, or n to 1"
            )
        return self

    @property
    def overrides(self) -> list[str]:
        """verl's settings of these completions."""
        values = {
            "n": self.n,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "do_sample": self.temperature > 0,
        }
        return [
            f"actor_rollout_ref.rollout.val_kwargs.{key}={value}" for key, value in values.items()
        ]
