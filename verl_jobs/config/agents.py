"""Who takes part in a conversation, and how long it may be."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator


class Agents(BaseModel):
    """Conversations instead of single answers: the Generator writes, the Executor reports, the Reviewer comments, the Generator mends."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    turns: PositiveInt = 1
    """Programs a conversation may hold; 1: an answer, no conversation."""
    tokens: PositiveInt = 336
    """Most tokens of a conversation after its first question, what is told to the policy included. With the question they must fit the model."""
    reviewer: str = "none"
    """Who comments between two programs: `none`; `self`, the policy in the same conversation; or a folder or an endpoint, not trained."""
    trains: Literal["generator", "reviewer"] = "generator"
    """Whose words are learned. `reviewer`: another Generator writes and mends, and the reward is what the comment changed in the verdict."""
    generator: str = ""
    """With `trains: reviewer`: who writes and mends, a folder or an endpoint."""
    other_tokens: PositiveInt = 104
    """Longest message of a model that is not trained."""
    shaping: float = Field(0.0, ge=0, le=1)
    """Most that a conversation gains by visible tests that no program before passed, the first one's included; 0: the last answer alone counts."""

    @model_validator(mode="after")
    def parts_fit(self) -> Agents:
        if (self.trains == "reviewer") != bool(self.generator):
            raise ValueError(
                "trains: reviewer needs a generator, and only it has one: give agents.generator, a folder or an endpoint"
            )
        if self.trains == "reviewer" and self.reviewer != "none":
            raise ValueError(
                "with trains: reviewer the policy is the reviewer: leave agents.reviewer out"
            )
        if (
            self.turns == 1
            and (self.reviewer != "none" or self.shaping)
            and self.trains == "generator"
        ):
            raise ValueError(
                "with one turn there is nothing to review or to improve: give agents.turns of 2 or more"
            )
        return self

    @property
    def on(self) -> bool:
        return self.turns > 1 or self.trains == "reviewer"
