"""The search space and budget of `ratchet tune`.

They name keys of a profile's `training` and the values to try. `experiments/search_space.py` checks
that the profile has these keys and accepts the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    field_validator,
    model_validator,
)

from artifacts.section import Section

Value = bool | int | float | str


class KeyRange(Section):
    """The values of one key.

    One of `log_uniform: [low, high]`, `uniform: [low, high]` and `choice: [a, b, ...]`.
    """

    log_uniform: tuple[float, float] | None = None
    uniform: tuple[float, float] | None = None
    choice: tuple[Value, ...] | None = None

    @model_validator(mode="after")
    def is_one(self) -> KeyRange:
        spans = self.model_dump(exclude_none=True)
        if len(spans) != 1:
            raise ValueError(
                f"give one of {', '.join(KeyRange.model_fields)}, got {', '.join(spans) or 'none'}"
            )
        if self.choice is not None and len(set(map(repr, self.choice))) < 2:
            raise ValueError(
                "a choice needs at least two different values: add one, or set the key with --set"
            )
        if (ends := self.log_uniform or self.uniform) and ends[0] >= ends[1]:
            raise ValueError(f"low {ends[0]:g} is not below high {ends[1]:g}: give [low, high]")
        if self.log_uniform and self.log_uniform[0] <= 0:
            raise ValueError(
                f"log_uniform must begin above 0, got {self.log_uniform[0]:g}: or use uniform"
            )
        return self

    @property
    def ends(self) -> tuple[Value, ...]:
        """The smallest and the greatest value, or all values of a choice."""
        return self.log_uniform or self.uniform or self.choice or ()

    def __contains__(self, value: object) -> bool:
        if self.choice is not None:
            return value in self.choice
        return isinstance(value, int | float) and self.ends[0] <= value <= self.ends[1]  # type: ignore[operator]  # numbers, as ends are here

    def __repr__(self) -> str:
        return " ".join(
            f"{kind} {list(ends)}" for kind, ends in self.model_dump(exclude_none=True).items()
        )


class Tuning(Section):
    """The search of `ratchet tune` (docs/how-to/tuning.md)."""

    space: Mapping[str, KeyRange] = {
        "training.learning_rate": KeyRange(log_uniform=(5e-5, 6e-4)),
        "training.kl_coefficient": KeyRange(choice=(0.0, 0.001, 0.01)),
        "training.entropy_coefficient": KeyRange(choice=(0.0, 0.001, 0.01)),
        "training.temperature": KeyRange(uniform=(0.7, 1.2)),
        "training.scale.updates": KeyRange(choice=(1, 2)),
        "training.clip": KeyRange(choice=(0.1, 0.2, 0.3)),
    }
    """Key of `training` -> one of `{log_uniform: [low, high]}`, `{uniform: [low, high]}`, `{choice:
    [a, b]}`. Clips have an effect from two updates on.
    """
    trials: PositiveInt = 16
    """Number of trials in a study; `--trials`."""
    minutes: NonNegativeFloat = 0.0
    """Time limit of one command. When it is reached, running trials are saved and ended, and the
    same command resumes the study. 0: no limit. `--minutes`.
    """
    reduction: int = Field(3, ge=2)
    """One in this many trials continues after a comparison with the others. The first comparison is
    at the step of the first checkpoint, the next one at this many times the steps.
    """
    at_once: NonNegativeInt = 0
    """Trials, seeds and variants that train at the same time. 0: one on a private Ray, and on a
    cluster as many as its GPUs have room for.
    """

    @field_validator("space", mode="before")
    @classmethod
    def flat(cls, space: Any) -> Any:
        """Flatten the nested form.

        `--set tuning.space.training.clip={...}` and a profile's own sections are nested.
        """
        return dict(_flat(space)) if isinstance(space, Mapping) else space

    @field_validator("space")
    @classmethod
    def is_some(cls, space: Mapping[str, KeyRange]) -> Mapping[str, KeyRange]:
        if not space:
            raise ValueError(
                "the search space is empty: name keys of `training`, or remove `space` for the "
                "default one"
            )
        return space


def _flat(space: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in space.items():
        if (
            isinstance(value, Mapping)
            and value
            and all(isinstance(each, Mapping) for each in value.values())
        ):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
