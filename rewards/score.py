"""What a reward returns: a value, or no score at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.protocol import Verdict


@dataclass(frozen=True)
class Score:
    """`value` in [-1, 1], or None when the judge failed: such a sample is left out of the advantage, it is never a zero."""

    value: float | None
    verdict: Verdict
    components: dict[str, float] = field(default_factory=dict)
    passed: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        if self.value is not None and not -1.0 <= self.value <= 1.0:
            raise ValueError(f"a score lies in [-1, 1], got {self.value}")
        if (self.value is None) != (self.verdict is Verdict.INFRA):
            raise ValueError(f"no score belongs to INFRA alone, got value {self.value} with verdict {self.verdict}")

    @property
    def solved(self) -> bool:
        return self.verdict is Verdict.AC
