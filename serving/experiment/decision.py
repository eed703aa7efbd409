"""The decision on a challenger in front of users: deploy, keep the champion, or continue.

In: the state of the guardrails, the interval of the primary metric, the sample ratio. Out: a
decision and its reasons in sentences. It may be computed after every request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.statistics.hypothesis_tests import Interval
from serving.experiment.guardrail import Harm

Kind = Literal["deploy", "keep", "continue"]


@dataclass(frozen=True)
class Primary:
    """The metric that the challenger should improve; larger is better.

    interval: of the difference, challenger minus champion, from a confidence sequence of `pairs`.
    gain: the least difference for which a deployment is worth it; a negative one is a margin of
    non-inferiority.
    """

    name: str
    pairs: int
    interval: Interval
    gain: float = 0.0


@dataclass(frozen=True)
class ExperimentDecision:
    kind: Kind
    reasons: tuple[str, ...]


def decide(
    harms: Sequence[Harm],
    primary: Primary | None,
    *,
    tested: bool = False,
    ratio_p_value: float = 1.0,
    ratio_level: float = 0.001,
    min_pairs: int = 100,
) -> ExperimentDecision:
    """Decide, in this order:

    keep      a guardrail is breached; or the primary metric cannot reach its gain any more.
    continue  the traffic was not split as assigned, so that no result is reliable; too few pairs; a
              guardrail is not cleared; or the gain is not shown yet.
    deploy    otherwise. Without a primary metric the guardrails alone decide, and unless requests
              were `tested`, the reasons say that quality was not measured.

    A breach outranks the sample ratio: traffic that is lost is a harm too.
    """
    if breaches := [_breach(harm) for harm in harms if harm.breached]:
        return ExperimentDecision("keep", tuple(breaches))
    if ratio_p_value <= ratio_level:
        reason = (
            f"The arms did not get their shares of the traffic (p = {ratio_p_value:.2g}): find the "
            "lost requests first."
        )
        return ExperimentDecision("continue", (reason,))
    if primary and primary.interval.high < primary.gain:
        return ExperimentDecision(
            "keep", (f"{_of(primary)}: a gain of {primary.gain:g} is ruled out.",)
        )
    waiting = [_waiting(harm, min_pairs) for harm in harms]
    if primary and primary.interval.low <= primary.gain:
        waiting.append(f"{_of(primary)}: a gain above {primary.gain:g} is not shown yet.")
    elif primary and primary.pairs < min_pairs:
        waiting.append(f"{primary.name}: {primary.pairs} of at least {pairs_text(min_pairs)}.")
    if open_ := tuple(reason for reason in waiting if reason):
        return ExperimentDecision("continue", open_)
    passed = tuple(
        f"{harm.guardrail.name}: {harm.guardrail.margin:g} worse is ruled out "
        f"(p = {harm.cleared_p:.2g}, {pairs_text(harm.pairs)})."
        for harm in harms
    )
    if primary:
        return ExperimentDecision("deploy", (f"{_of(primary)}.", *passed))
    untested = () if tested else ("Quality was not measured: no request carries tests.",)
    return ExperimentDecision("deploy", (*untested, *passed))


def pairs_text(count: int) -> str:
    return f"{count} pair{'s' * (count != 1)}"


def _breach(harm: Harm) -> str:
    return (
        f"{harm.guardrail.name}: worse than the champion by more than {harm.guardrail.margin:g} "
        f"(p = {harm.p_value:.2g} <= {harm.level:.2g}, {pairs_text(harm.pairs)}; at least "
        f"{harm.interval.low:.4g})."
    )


def _waiting(harm: Harm, min_pairs: int) -> str:
    if harm.pairs < min_pairs:
        return f"{harm.guardrail.name}: {harm.pairs} of at least {pairs_text(min_pairs)}."
    if not harm.cleared:
        return (
            f"{harm.guardrail.name}: {harm.guardrail.margin:g} worse is not ruled out yet "
            f"(p = {harm.cleared_p:.2g}, {harm.alpha:.2g} needed, {pairs_text(harm.pairs)})."
            + f" Without key {harm.against} it is." * bool(harm.against)
            + f" Without key {harm.helped_by} it is shown." * bool(harm.helped_by)
        )
    return ""


def _of(primary: Primary) -> str:
    low, high = primary.interval
    return f"{primary.name}: difference {low:+.4g} to {high:+.4g} ({pairs_text(primary.pairs)})"
