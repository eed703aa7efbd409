"""Settings of a release: how a new version gets its traffic, and how much harm is tolerated."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, field_validator

from artifacts.section import Section

Strategy = Literal["gradual", "blue-green", "shadow", "immediate", "experiment"]


class ReleaseSettings(Section):
    """How a new version reaches users: steps, and the harm after which it is taken back."""

    automatic: bool = False
    """Whether Dagster opens a release for each new champion. Without it a version is released by
    `ratchet deploy`.
    """
    strategy: Strategy = "gradual"
    """Default of `ratchet deploy --strategy` for one version, and of releases that a sensor opens.
    Several versions are an experiment.
    """
    shares: tuple[float, ...] = (0.01, 0.05, 0.25, 0.5)
    """The challenger's share of the traffic in each step of a gradual release; then it gets all."""
    bake_s: NonNegativeFloat = 600.0
    """Least seconds of a step."""
    watch_s: NonNegativeFloat = 3600.0
    """Seconds in which the challenger has all requests but `holdback`, after the guardrails are
    cleared and before it is promoted.
    """
    min_pairs: PositiveInt = 50
    """Least pairs of requests that every guardrail has seen in a step before the next one."""
    holdback: float = Field(0.05, gt=0, lt=1)
    """Share that stays with the champion for the comparison during a blue-green release, and while
    a challenger is watched.
    """
    alpha: float = Field(0.05, gt=0, lt=0.5)
    """Chance at most that an equal challenger is rolled back, and that one is promoted which is
    worse than a margin.
    """
    alpha_over: Literal["release", "all"] = "release"
    """Whether `alpha` holds for each release, or for all releases that are ever made together."""
    sticky: bool = True
    """Whether a user gets the same version in all requests. Each user is one observation then."""
    errors_margin: NonNegativeFloat = 0.02
    """Tolerated rise of the share of failed requests."""
    refusals_margin: NonNegativeFloat = 0.02
    """Tolerated rise of the share of requests that the model declines to answer."""
    slow_ratio: float = Field(1.25, ge=1)
    """How many times the champion's 95th percentile is tolerated, for the seconds until the first
    token and for those of the whole answer.
    """
    slow_margin: NonNegativeFloat = 0.02
    """Tolerated rise of the share of requests that take longer than that."""
    tokens_margin: NonNegativeFloat = 64.0
    """Tolerated rise of the mean tokens of an answer, which is its cost."""
    tokens_limit: PositiveFloat = 2048.0
    """Longest answer that counts, in tokens."""
    quality_margin: NonNegativeFloat = 0.02
    """Tolerated rise of the share of answers that fail the tests in their request."""
    trusted_keys: tuple[str, ...] = ()
    """Names of API keys that count without limit, such as that of an application that sends the
    requests of everybody. Operators' keys are trusted, and so is the only key of a home. Nothing is
    decided that the requests of any one other key decide.
    """
    key_share: float = Field(0.1, gt=0, le=1)
    """Largest share of the counted users that one API key may have, where several keys send
    requests; of few keys, twice an equal share. Ten users of a key always count. 1: no limit.
    """
    gain: float | None = Field(None, gt=-1, lt=1)
    """Least gain of the primary metric (verified answers, else accepted feedback) for a promotion;
    below 0 it is a margin. Without it the guardrails alone decide, and an experiment takes 0.
    """
    max_pairs: PositiveInt = 20_000
    """Pairs of requests after which a release ends undecided, at the step that decides; and after
    which a challenger of an experiment is dropped if no gain is shown.
    """
    max_days: PositiveFloat = 14.0
    """Days after which a release that is neither cleared nor breached ends undecided."""
    failed_gateways: float = Field(0.5, ge=0, lt=1)
    """A release is aborted if more than this share of the gateways cannot load the challenger.
    Those that cannot are out of service until then.
    """

    @field_validator("shares")
    @classmethod
    def rising(cls, shares: tuple[float, ...]) -> tuple[float, ...]:
        if not shares or list(shares) != sorted({*shares}) or shares[0] <= 0 or shares[-1] >= 1:
            raise ValueError("shares must rise and be in (0, 1), such as 0.01, 0.05, 0.25, 0.5")
        return shares
