"""What an answer is paid for, as configuration. The defaults are the embedded profile's: correctness and format alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    field_validator,
    model_validator,
)

Share = Annotated[float, Field(ge=0.0, le=1.0)]
TIMED = (
    "efficiency",
)  # components made of measured time: with one of these two runs need not agree


class Weights(BaseModel):
    """How much each component counts; they are divided by their sum."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    correctness: NonNegativeFloat = 0.9
    """What the tests say."""
    format: NonNegativeFloat = 0.1
    """Whether there is a program that defines what was asked for: what a model learns first."""
    style: NonNegativeFloat = 0.0
    """Of accepted programs: what the linter finds, and the complexity of the worst function."""
    efficiency: NonNegativeFloat = 0.0
    """Of accepted programs: CPU time and memory against the references. Made of time: above 0, two runs need not agree."""
    preference: NonNegativeFloat = 0.0
    """What people chose, for the answers that they were shown (`preferences`)."""


class RewardConfig(BaseModel):
    """What an answer is paid for."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: Literal["tests", "random"] = "tests"
    """`random` pays 1 or -1 by a hash of problem and answer, whatever the tests say: the control experiment, whose model must not be promoted."""
    file: str = ""
    """A Python file with a reward of your own (`ratchet reward new` writes one); it decides; of the rest of this section only `shared` is read."""
    weights: Weights = Weights()
    """Of the components of `tests`."""
    sparse: bool = True
    """Correctness pays only where every test passes; else by the share of hidden tests that pass."""
    schedule: tuple[tuple[NonNegativeInt, Share], ...] = ()
    """From binary to dense and back, instead of `sparse`: pairs of training step and share of dense, straight lines between."""
    combine: Literal["sum", "lexicographic", "constraint"] = "sum"
    """`sum` weighs the components; `lexicographic` lets one count only between equals of all heavier ones; `constraint` adds `floors`."""
    floors: Mapping[
        Literal["correctness", "format", "style", "efficiency", "preference"],
        Annotated[float, Field(ge=-1.0, le=1.0)],
    ] = {}
    """For `constraint`: an answer with a component below its floor is worth less than any that keeps them all."""
    security: bool = False
    """A hard constraint: an attempt that the sandbox saw (another program, a socket, a file outside, a refused call) makes any answer worth -1."""
    shared: bool = False
    """Pay for verdicts with trust `shared`, as those of unittests: a program may forge them. Off: such a verdict is paid as if no test had passed."""
    preferences: str = ""
    """A JSON lines or parquet file of choices between two answers, for `weights.preference`."""
    unverified: bool = False
    """Train although the exploit battery did not pass (`--unverified`): stamped into everything that is made with it."""

    @model_validator(mode="after")
    def something_counts(self) -> RewardConfig:
        if self.weights.correctness == 0.0:
            raise ValueError(
                "weights.correctness is 0: a reward that ignores the tests teaches none of them; give it a weight above 0"
            )
        return self

    @model_validator(mode="after")
    def parts_fit(self) -> RewardConfig:
        if self.file and self.kind == "random":
            raise ValueError("file and kind: random exclude each other: leave one out")
        if any(a >= b for (a, _), (b, _) in pairwise(self.schedule)):
            raise ValueError("schedule: the steps must rise, e.g. [[0, 0.0], [10, 1.0], [40, 0.0]]")
        if bool(self.floors) != (self.combine == "constraint"):
            raise ValueError("floors and combine: constraint belong together: give both or none")
        if bool(self.preferences) != (self.weights.preference > 0):
            raise ValueError(
                "preferences and weights.preference belong together: give both or none"
            )
        return self

    @field_validator("file", "preferences")
    @classmethod
    def absolute(cls, path: str) -> str:
        """Ray's workers have a working directory of their own."""
        return str(Path(path).expanduser().absolute()) if path else path

    @property
    def timed(self) -> tuple[str, ...]:
        """The components made of measured time that this reward pays: with any, no determinism can be claimed."""
        return (
            ()
            if self.file or self.kind == "random"
            else tuple(name for name in TIMED if getattr(self.weights, name) > 0)
        )

    def dense_share(self, step: int) -> float:
        """How much of correctness is dense at this training step: 0 binary, 1 by the share of hidden tests."""
        if not self.schedule:
            return 0.0 if self.sparse else 1.0
        if step <= self.schedule[0][0]:
            return self.schedule[0][1]
        for (a, low), (b, high) in pairwise(self.schedule):
            if step <= b:
                return low + (high - low) * (step - a) / (b - a)
        return self.schedule[-1][1]


QUALITY = RewardConfig(
    weights=Weights(correctness=0.7, format=0.0, style=0.2, efficiency=0.1), security=True
)
"""What the GPU profiles pay."""
