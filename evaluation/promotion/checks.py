"""The conditions of the promotion policy, one function for each.

In: comparisons, facts, the policy. Out: a `Check` for each: whether it passed, and a sentence that
needs no prior knowledge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from evaluation.promotion.comparison import Comparison, count, odds, p_text, signed
from evaluation.promotion.method_names import name_of_test
from evaluation.promotion.policy import Measure, Policy
from evaluation.promotion.rate import Plain, points
from evaluation.scorecard import Scorecard
from evaluation.statistics.alpha_spending import Gate
from evaluation.statistics.paired import TestName, holm

WORDS: dict[Measure, str] = {
    "denied_calls": "forbidden calls in its training's last step",
    "contamination": "of the gated benchmark's tasks are suspect, as a share",
    "hack_gap": "between visible and hidden tests passed, as a share",
    "latency_s": "seconds per completion",
    "tokens": "tokens per completion",
    "cost": "for its training",
}

TOSSED: dict[TestName, str] = {
    "mcnemar": "each changed task would be a coin toss, and ",
    "sign_flips": "each task's difference would be as likely in favour of either, and ",
    "cluster_sign_flips": "each cluster's difference would be as likely in favour of either, and ",
}


class Facts(Plain):
    """Facts about a challenger besides its scores. A default means "not measured", and blocks only
    if the policy has a limit for it.
    """

    # Benchmark that selected it among the checkpoints of its run; empty: not selected here.
    picked_on: str = ""
    made_elsewhere: str = ""  # path of a checkpoint that no run of this home made
    missing_links: tuple[str, ...] = ()  # inputs in its passport that cannot be found
    # Checkpoints of its lineage whose reward had not passed the exploit battery.
    unverified: tuple[str, ...] = ()
    measures: dict[Measure, float] = Field(default_factory=dict)
    # By benchmark: tasks that resemble training data.
    suspects: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    gates: tuple[Gate, ...] = ()  # all earlier gates, oldest first
    weights: str = ""  # hash of the challenger's tensors (artifacts/tensors.py)
    # Earlier decisions on these weights and benchmark, such as "chain-0003 (2026-11-20): refuse".
    earlier_tries: tuple[str, ...] = ()


class Check(Plain):
    """One condition: whether it passed, and a sentence for the report. A failed one refuses the
    challenger.
    """

    # win, gain, not worse, tags, limit, provenance, battery, fresh tasks, one decision,
    # picked apart, measured
    name: str
    about: str  # the benchmark or the measure
    passed: bool
    sentence: str
    numbers: dict[str, float] = Field(default_factory=dict)


def identical(challenger: Scorecard) -> Check:
    sentence = (
        "The challenger has the same weights as the champion "
        f"({challenger.checkpoint_hash[:12]}): there is nothing to promote."
    )
    return Check(name="win", about=challenger.benchmark, passed=False, sentence=sentence)


def wins(c: Comparison, policy: Policy, level: float) -> Iterator[Check]:
    significant = c.p_better <= level
    numbers = {
        "p": c.p_better,
        "level": level,
        "difference": c.difference,
        "low": c.difference_low,
        "high": c.difference_high,
    }
    yield Check(
        name="win",
        about=c.benchmark,
        passed=significant and c.difference > 0,
        sentence=_significance(c, policy, level),
        numbers=numbers,
    )
    enough = c.difference >= policy.minimum_gain
    relation = "at least" if enough else "less than"
    sentence = (
        f"The gain of {signed(c.difference)} points is {relation} the "
        f"{points(policy.minimum_gain)} points that a new version must gain."
    )
    yield Check(
        name="gain",
        about=c.benchmark,
        passed=enough,
        sentence=sentence if significant else "",
        numbers={"gain": c.difference, "asked": policy.minimum_gain},
    )


def _significance(c: Comparison, policy: Policy, level: float) -> str:
    if not c.won and not c.lost:
        return "Both solve exactly the same tasks, so neither is shown to be better."
    recorded = c.model_dump()
    test = name_of_test(recorded)
    if c.difference < 0:
        luck = "more than chance explains" if c.p_worse <= level else "which may be chance"
        alike = (
            f"if both were equally good, such a result would occur {odds(c.p_worse)}; "
            f"{p_text(c.p_worse)}, {test}"
        )
        return (
            f"The challenger solves fewer tasks than the champion, {luck} ({alike}): there is no "
            "gain to promote."
        )
    coin = (
        f"If both were equally good, {TOSSED[c.test]}chance would give such a "
        f"result {odds(c.p_better)} ({p_text(c.p_better)}, {test}, one-sided)"
    )
    verdict = "so the gain counts as real" if c.p_better <= level else "so chance is not ruled out"
    share = (
        ""
        if policy.spending == "fresh"
        else f", {policy.spending.upper()}'s share of {policy.alpha:g} for this gate"
    )
    return f"{coin}. The level is once in {1 / level:,.0f} times ({level:.3g}{share}), {verdict}."


def holds(others: Sequence[Comparison], policy: Policy) -> Iterator[Check]:
    """Check every other benchmark for a fall. `tags` tests those of `harm_only`."""
    for name in sorted(policy.margins.keys() - {c.benchmark for c in others}):
        sentence = (
            f"The policy has a margin for {name}, which was not measured on both: evaluate both on "
            "it, or remove it from policy.margins."
        )
        yield Check(name="measured", about=name, passed=False, sentence=sentence)
    yield from (_not_worse(c, policy) for c in others if c.benchmark not in policy.harm_only)


def _not_worse(c: Comparison, policy: Policy) -> Check:
    fact = f"On {c.benchmark}: champion {c.before}, challenger {c.after}"
    numbers = {
        "difference": c.difference,
        "low": c.difference_low,
        "high": c.difference_high,
        "p_worse": c.p_worse,
    }
    if c.p_worse <= policy.harm_alpha:
        passed, sentence = (
            False,
            f"{fact}. This fall is significant ({p_text(c.p_worse)}, the level is "
            f"{policy.harm_alpha:g}): it blocks the promotion.",
        )
    else:
        margin, p = c.margin or policy.margin, 1.0 if c.p_not_worse is None else c.p_not_worse
        passed, numbers = p <= policy.harm_alpha, numbers | {"margin": margin, "p_not_worse": p}
        line = f"({p_text(p)}, the level is {policy.harm_alpha:g})"
        verdict = (
            f"a fall of {points(margin)} points or more is ruled out {line}"
            if passed
            else f"a fall of {points(margin)} points or more is not ruled out {line}: that blocks "
            "the promotion, until more tasks or completions rule it out"
        )
        sentence = f"{fact}. There is no significant fall ({p_text(c.p_worse)}), and {verdict}."
    return Check(
        name="not worse", about=c.benchmark, passed=passed, sentence=sentence, numbers=numbers
    )


def tags(comparisons: Sequence[Comparison], policy: Policy) -> Iterator[Check]:
    """Test every tag of every benchmark, and the benchmarks of `harm_only`, with one correction."""
    groups = [
        (f"tasks tagged {b.tag} of {c.benchmark}", b.tasks, b.before, b.after, b.p_worse)
        for c in comparisons
        for b in c.buckets
    ]
    whole = [c for c in comparisons if c.benchmark in policy.harm_only]
    groups += [
        (c.benchmark, c.before.tasks, c.before.share, c.after.share, c.p_worse) for c in whole
    ]
    if not groups:
        return
    adjusted = holm([p for *_, p in groups])
    harmed = [
        (group, p) for group, p in zip(groups, adjusted, strict=True) if p <= policy.harm_alpha
    ]
    tests = count(len(groups), "test")
    test = f"Holm's correction for {tests}, the level is {policy.harm_alpha:g}"
    falls = [
        f"on the {tasks} {about} from {points(was)} to {points(now)} % ({p_text(p)})"
        for (about, tasks, was, now, _), p in harmed
    ]
    blocked_sentence = (
        f"It got worse by more than chance explains ({test}), which blocks the promotion: "
        f"{'; '.join(falls)}."
    )
    for (about, _, before, after, _), p in harmed:  # the first check has the sentence for all
        yield Check(
            name="tags",
            about=about,
            passed=False,
            sentence=blocked_sentence,
            numbers={"before": before, "after": after, "p_holm": p},
        )
        blocked_sentence = ""
    if not harmed:
        sentence = (
            f"None of {len(groups)} groups of tasks got worse by more than chance explains "
            f"({test})."
        )
        yield Check(
            name="tags",
            about=f"{len(groups)} groups",
            passed=True,
            sentence=sentence,
            numbers={"least_p_holm": min(adjusted)},
        )


def limits(policy: Policy, facts: Facts) -> Iterator[Check]:
    for name, most in sorted(policy.limits.items()):
        value = facts.measures.get(name)
        if value is None:
            sentence = (
                f"The policy limits {name} to {most:g}, and it was not measured: that blocks the "
                "promotion."
            )
            yield Check(
                name="limit", about=name, passed=False, sentence=sentence, numbers={"most": most}
            )
        else:
            within = value <= most
            sentence = (
                f"{name}: {value:.4g} {WORDS[name]}, {'within' if within else 'more than'} the "
                f"{most:g} that the policy allows."
            )
            yield Check(
                name="limit",
                about=name,
                passed=within,
                sentence=sentence,
                numbers={"value": value, "most": most},
            )


def validity(
    c: Comparison, earlier: Sequence[Gate], policy: Policy, facts: Facts
) -> Iterator[Check]:
    """Check that the test itself is valid, and that the version is traceable."""
    used = next((gate for gate in earlier if gate.benchmark_version == c.benchmark_version), None)
    if policy.spending == "fresh" and used:
        sentence = (
            f"These tasks decided an earlier gate ({used.run_id}), so alpha would be spent twice: "
            "draw new tasks, or set policy.spending to lord or saffron."
        )
        yield Check(name="fresh tasks", about=c.benchmark, passed=False, sentence=sentence)
    if facts.earlier_tries and not policy.second_tries:
        sentence = (
            f"There is a decision on these weights already: {', '.join(facts.earlier_tries)}. A "
            "second try gives chance a second try; policy.second_tries allows it, and it spends "
            "alpha."
        )
        yield Check(name="one decision", about=c.benchmark, passed=False, sentence=sentence)
    if facts.picked_on == c.benchmark:
        sentence = (
            f"It was selected among the checkpoints of its run by {c.benchmark}, so that score is "
            "too high: select on validation, gate on other tasks."
        )
        yield Check(name="picked apart", about=c.benchmark, passed=False, sentence=sentence)
    if facts.unverified:
        names = ", ".join(facts.unverified)
        verdict = (
            "that blocks the promotion: a reward that pays for exploits teaches exploits"
            if policy.battery
            else "the policy allows that"
        )
        sentence = f"The reward that trained {names} had not passed the exploit battery; {verdict}."
        yield Check(name="battery", about=names, passed=not policy.battery, sentence=sentence)
    if facts.missing_links:
        names = ", ".join(facts.missing_links)
        verdict = "that blocks the promotion" if policy.provenance else "the policy allows that"
        yield Check(
            name="provenance",
            about=names,
            passed=not policy.provenance,
            sentence=f"Inputs in its passport cannot be found: {names}; {verdict}.",
        )
    if facts.made_elsewhere:
        sentence = (
            f"No run of this home made it ({facts.made_elsewhere}): its training data and its "
            "reward are unknown here."
        )
        yield Check(name="provenance", about="made elsewhere", passed=True, sentence=sentence)
