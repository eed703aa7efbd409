"""A benchmark in a profile: its name, the number of completions, and the prompt."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from artifacts.section import Section
from evaluation.sampling import Sampling


class BenchmarkSettings(Section):
    """One benchmark of a profile. A string is short for its name with these defaults."""

    name: str
    """`heldout`, a published benchmark such as `humaneval+` or
    `livecodebench@2024-08-01..2025-02-01`, or the path of a YAML file."""
    n: PositiveInt = 1
    """Completions per task; pass@k needs at least k."""
    temperature: NonNegativeFloat = 0.0
    """Sampling temperature; n above 1 needs one above 0."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draw only from the most likely tokens that together have this share."""
    prompt: Literal["chat", "upstream"] = "chat"
    """`chat`: Ratchet's prompt in the model's chat template. `upstream`: the published prompt and
    stop words, which a base model continues."""

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _draws_differ(self) -> BenchmarkSettings:
        if self.n > 1 and self.temperature == 0:
            raise ValueError(
                f"{self.name}: {self.n} completions at temperature 0 are all equal: set a "
                "temperature such as 0.8, or n to 1"
            )
        return self

    def applied(self, sampling: Sampling) -> Sampling:
        """Return the benchmark's generation settings with these changes."""
        return sampling.model_copy(
            update={"n": self.n, "temperature": self.temperature, "top_p": self.top_p}
        )
