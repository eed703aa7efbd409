"""The plan of a release: its steps and guardrails, fixed when it is opened and recorded with it.

In: the settings and a strategy. Out: a `ReleasePlan`, and how much traffic it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from evaluation.statistics.online.confidence_sequence import pairs_needed
from evaluation.statistics.online.welch import observations_needed
from resources.config.release import ReleaseSettings, Strategy
from resources.registry.releases import Release
from serving.experiment.guardrail import Guardrail, guardrail_level

ERRORS, REFUSALS, TOKENS = "errors", "refusals", "tokens"
FIRST_TOKEN, SECONDS, QUALITY = "first token", "seconds", "failed tests"
DROPS = (0.02, 0.05, 0.2)  # differences for which a plan states its needs


class ReleaseStep(BaseModel):
    """One step of a release.

    share: of the challenger. shadow: it answers a copy of all traffic, and nobody sees it. watch:
    the last step, after the decision.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float
    shadow: bool = False
    watch: bool = False

    @property
    def title(self) -> str:
        share = f"{100 * self.share:.3g} %"
        return "shadow" if self.shadow else f"{share}, watched" if self.watch else share


class ReleasePlan(BaseModel):
    """The steps and guardrails of a release.

    level: share of alpha of each guardrail. trusted: ids of the API keys that count without limit.
    A release without steps promotes at once.

    The step before the watched one decides: every guardrail must be cleared there, or, of a shadow,
    a person agree. After the last step the challenger gets all traffic. An experiment begins with
    equal shares, its only planned step; its record has the later ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Strategy
    steps: tuple[ReleaseStep, ...]
    guardrails: tuple[Guardrail, ...]
    level: float
    bake_s: float
    watch_s: float
    min_pairs: int
    sticky: bool
    gain: float | None
    trusted: tuple[str, ...]
    key_share: float
    max_pairs: int
    max_days: float
    failed_gateways: float

    @property
    def experiment(self) -> bool:
        return self.strategy == "experiment"

    @property
    def alpha(self) -> float:
        """Chance at most that this challenger is promoted though it is worse than a margin."""
        return self.level * len(self.guardrails)

    def decides(self, step: int) -> bool:
        """Whether the guardrails must be cleared in this step."""
        return not self.steps[step].watch and all(later.watch for later in self.steps[step + 1 :])


def recorded_plan(release: Release) -> ReleasePlan:
    """Return the plan that was recorded when the release was opened."""
    return ReleasePlan.model_validate(release.plan)


def allocations(release: Release, plan: ReleasePlan) -> list[dict[int, float]]:
    """Return challenger -> its share of the traffic, for each step: of a release all of its plan,
    of an experiment those until now.
    """
    if not plan.experiment:
        return [{release.challenger: step.share} for step in plan.steps]
    equal = dict.fromkeys(release.challengers, plan.steps[0].share)
    later = [event.detail["shares"] for event in release.events if event.kind == "step"]
    return [equal, *({int(v): share for v, share in shares.items()} for shares in later)]


class Need(NamedTuple):
    """Requests in the comparison that show a rise of the share of failed requests by `drop`.

    watched: on average, where every moment may decide. fixed: with power 80 % and one look.
    """

    drop: float
    watched: int
    fixed: int


def plan_of(
    settings: ReleaseSettings,
    strategy: Strategy,
    number: int,
    challengers: int = 1,
    trusted: Sequence[str] = (),
) -> ReleasePlan:
    """Return the plan of the number-th release, 1 for the first. trusted: ids of keys."""
    most = 1 - settings.holdback
    watched = ReleaseStep(share=most, watch=True)
    steps = {
        "gradual": (*(ReleaseStep(share=share) for share in settings.shares), watched),
        "blue-green": (ReleaseStep(share=most), watched),
        "shadow": (ReleaseStep(share=0.5, shadow=True), watched),
        "immediate": (),
        "experiment": (ReleaseStep(share=1 / (challengers + 1)),),
    }[strategy]
    guardrails = (
        Guardrail(ERRORS, margin=settings.errors_margin),
        Guardrail(REFUSALS, margin=settings.refusals_margin),
        Guardrail(FIRST_TOKEN, margin=settings.slow_margin, ratio=settings.slow_ratio),
        Guardrail(SECONDS, margin=settings.slow_margin, ratio=settings.slow_ratio),
        Guardrail(TOKENS, settings.tokens_limit, settings.tokens_margin),
        Guardrail(QUALITY, margin=settings.quality_margin),
    )
    every = number if settings.alpha_over == "all" else None
    return ReleasePlan(
        strategy=strategy,
        steps=steps,
        guardrails=guardrails,
        level=guardrail_level(settings.alpha, len(guardrails), challengers, every),
        bake_s=settings.bake_s,
        watch_s=settings.watch_s,
        min_pairs=settings.min_pairs,
        sticky=settings.sticky,
        gain=settings.gain or 0.0 if strategy == "experiment" else settings.gain,
        trusted=tuple(trusted),
        key_share=settings.key_share,
        max_pairs=settings.max_pairs,
        max_days=settings.max_days,
        failed_gateways=settings.failed_gateways,
    )


def needs(plan: ReleasePlan, base: float, share: float) -> list[Need]:
    """Return what a rise of the champion's error rate `base` needs at this share of the traffic."""
    margin, least = plan.guardrails[0].margin, min(share, 1 - share)
    found = []
    for drop in DROPS:
        if (excess := drop - margin) <= 0:
            continue
        # The rarer arm's value varies alone: the other one's is a mean of many at small shares.
        one = (base + drop) * (1 - base - drop)
        spread = sqrt(max(one + base * (1 - base) * least / (1 - least), 1e-4))
        watched = pairs_needed(excess, spread, plan.level) / least
        fixed = observations_needed(excess, spread, share=share, alpha=plan.level)
        found.append(Need(drop, round(watched), fixed))
    return found
