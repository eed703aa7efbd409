"""The promotion policy: the conditions for a challenger to replace the champion.

It is a section of the profile, or a YAML file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from artifacts.section import Section
from evaluation.statistics.alpha_spending import Spending

Measure = Literal["denied_calls", "contamination", "hack_gap", "latency_s", "tokens", "cost"]


class Policy(Section):
    """The conditions for a challenger to replace the champion (docs/explanation/promotion.md)."""

    benchmark: str = "heldout"
    """Benchmark that the challenger must win."""
    k: PositiveInt = 1
    """Compare by pass@k; more than 1 needs a benchmark with at least k completions per task."""
    alpha: float = Field(0.05, gt=0, lt=0.5)
    """Accepted share of promotions that are not earned, over all gates (`spending` divides it). The
    first gate gets a level of 0.011. At 0.01, a true gain of 10 points on 400 tasks is detected
    with a power of 0.7 to 0.9 (docs/measurements/promotion.md)."""
    minimum_gain: float = Field(0.02, ge=0, lt=1)
    """Smallest observed gain of pass@k worth a new version, as a share: 0.02 is two points. With
    many tasks a significant gain can still be too small."""
    spending: Spending = "lord"
    """`lord` and `saffron` shrink the level from gate to gate, and each promotion adds to it, so
    that `alpha` is the share of unearned promotions among all. `fresh`: each gate has the level
    `alpha`, so that unearned promotions add up over the nights; tasks may decide only once."""
    second_tries: bool = False
    """Whether weights that have been decided on may be decided on again. Such a try is a gate of
    its own, whose alpha is spent too."""
    harm_alpha: float = Field(0.05, gt=0, lt=0.5)
    """For the other benchmarks: accepted chance that a fall as large as the margin passes. For
    tags: chance of a false block."""
    margin: float = Field(0.05, gt=0, lt=1)
    """Non-inferiority margin, as a share: on every other measured benchmark, a fall this large must
    be ruled out."""
    margins: Mapping[str, float] = {}
    """Margins of single benchmarks, by name; a benchmark named here must be measured."""
    harm_only: tuple[str, ...] = ("regression",)
    """Benchmarks that block only if a fall is shown: small ones, which cannot rule out a fall."""
    tags: tuple[str, ...] | None = None
    """Prefixes of the tags whose tasks are tested separately, e.g. `operations-`; a significant
    fall there, with Holm's correction over all of them, blocks. None: every tag; empty: no tag."""
    tag_tasks: PositiveInt = 10
    """A tag of fewer tasks is not tested separately."""
    limits: Mapping[Measure, float] = {}
    """The most that a challenger may have: `denied_calls` of its training's last step,
    `contamination` (share of the gated tasks that are suspect), `hack_gap` (visible less hidden
    tests passed), `latency_s` and `tokens` per completion, `cost` of its training. A measure with a
    limit must be measured.
    """
    provenance: bool = True
    """Whether every input in the manifest of the challenger must exist."""
    battery: bool = True
    """Whether the reward that trained it must have passed the exploit battery."""

    @model_validator(mode="after")
    def margins_are_shares(self) -> Policy:
        if odd := next((name for name, margin in self.margins.items() if not 0 < margin < 1), None):
            raise ValueError(
                f"margins.{odd} must be in (0, 1), got {self.margins[odd]}: 0.03 is three points"
            )
        if self.benchmark in self.margins or self.benchmark in self.harm_only:
            raise ValueError(
                f"{self.benchmark} must be won, so no margin applies: remove it from margins and "
                "harm_only"
            )
        return self
