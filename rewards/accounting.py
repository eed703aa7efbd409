"""How many of the expected scores there are, and why the others are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

FailureKind = Literal["infrastructure", "reward"]  # the judge failed, or the reward file


class Accounting(NamedTuple):
    """Counts of completions, or of tasks."""

    measured: int
    masked: int  # the judge failed: `mask_sample`, of kind infrastructure
    failed: int  # the reward failed: `mask_sample`, of kind reward
    omitted: int  # there is no completion

    @classmethod
    def of(cls, kinds: Iterable[FailureKind | None], omitted: int) -> Accounting:
        counts = Counter(kinds)
        return cls(counts[None], counts["infrastructure"], counts["reward"], omitted)

    @property
    def expected(self) -> int:
        return sum(self)

    def __str__(self) -> str:
        return (
            f"expected {self.expected} = measured {self.measured} + masked {self.masked} + failed "
            f"{self.failed} + omitted {self.omitted}"
        )

    def as_json(self) -> dict[str, int]:
        return {"expected": self.expected, **self._asdict()}
