"""The conditions of the promotion policy, one function for each.

In: comparisons, facts, the policy. Out: a `Check` for each: whether it held, and a sentence that
needs no prior knowledge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from evaluation.promotion.comparison import Comparison, Plain, odds, p_text, points, signed
from evaluation.promotion.methods import name_of_test, recorded_test
from evaluation.promotion.policy import Measure, Policy
from evaluation.scorecard import Scorecard
from evaluation.statistics.alpha_spending import Gate
from evaluation.statistics.paired import TestName, holm

WORDS: dict[Measure, str] = {
    "denied_calls": "forbidden calls in its training's last step",
    "contamination": "of the gated benchmark's tasks are suspect, as a share",
    "hack_gap": "between visible and hidden tests passed, as a share",
    "latency_s": "seconds an answer",
    "tokens": "tokens an answer",
    "cost": "for its training",
}

TOSSED: dict[TestName, str] = {
    "mcnemar": "each changed task would be a coin toss, and ",
    "sign_flips": "each task's difference would be as likely in favour of either, and ",
    "cluster_sign_flips": "each cluster's difference would be as likely in favour of either, and ",
    "bootstrap": "",
}


class Facts(Plain):
    """What is known of a challenger besides its scores. The defaults mean "not looked at"; they
    block only what the policy limits.
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
    # Earlier decisions on these weights and benchmark, such as "chain-0003 (2026-11-20): refuse".
    earlier_tries: tuple[str, ...] = ()


class Check(Plain):
    """One condition: whether it held, and the sentence that says so. `failed` ones refuse the
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
        "The challenger has the very weights of the champion "
        f"({challenger.checkpoint_hash[:12]}): there is nothing to promote."
    )
    return Check(name="win", about=challenger.benchmark, passed=False, sentence=sentence)


def wins(c: Comparison, policy: Policy, level: float) -> Iterator[Check]:
    shown = c.p_better <= level
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
        passed=shown and c.difference > 0,
        sentence=_significance(c, policy, level),
        numbers=numbers,
    )
    enough = c.difference >= policy.minimum_gain
    relation = "at least" if enough else "less than"
    sentence = (
        f"The gain of {signed(c.difference)} points is {relation} the "
        f"{points(policy.minimum_gain)} points that a new version must bring."
    )
    yield Check(
        name="gain",
        about=c.benchmark,
        passed=enough,
        sentence=sentence if shown else "",
        numbers={"gain": c.difference, "asked": policy.minimum_gain},
    )


def _significance(c: Comparison, policy: Policy, level: float) -> str:
    if not c.won and not c.lost:
        return "Both solve exactly the same tasks, so that nothing speaks for either."
    recorded = c.model_dump()
    test = name_of_test(recorded)
    if c.difference < 0:
        luck = "more than bad luck explains" if c.p_worse <= level else "which may be bad luck"
        alike = (
            f"of two equally good ones the second looks so much worse {odds(c.p_worse)}; "
            f"{p_text(c.p_worse)}, {test}"
        )
        return (
            f"The challenger solves fewer tasks than the champion, {luck} ({alike}): there is no "
            "gain to promote."
        )
    coin = (
        f"Were the two equally good, {TOSSED[recorded_test(recorded)]}luck alone would bring a "
        f"result this good {odds(c.p_better)} ({p_text(c.p_better)}, {test}, one-sided)"
    )
    verdict = (
        "so that the gain counts as real"
        if c.p_better <= level
        else "so that luck is not ruled out"
    )
    spent = (
        ""
        if policy.spending == "fresh"
        else (
            f", what is left of {policy.alpha:g} after the gates before, by "
            f"{policy.spending.upper()}"
        )
    )
    return f"{coin}. The line is once in {1 / level:,.0f} times ({level:.3g}{spent}), {verdict}."


def holds(others: Sequence[Comparison], policy: Policy) -> Iterator[Check]:
    for name in sorted(policy.margins.keys() - {c.benchmark for c in others}):
        sentence = (
            f"The policy wants no loss on {name}, and it was not measured on both: evaluate both "
            "on it, or take it out of policy.margins."
        )
        yield Check(name="measured", about=name, passed=False, sentence=sentence)
    for c in others:
        fact = f"On {c.benchmark}: champion {c.before}, challenger {c.after}"
        numbers = {
            "difference": c.difference,
            "low": c.difference_low,
            "high": c.difference_high,
            "p_worse": c.p_worse,
        }
        if c.benchmark in policy.harm_only:
            continue  # `tags` tests it
        if c.p_worse <= policy.harm_alpha:
            sentence = (
                f"{fact}. That is a fall which chance explains with {p_text(c.p_worse)}, at most "
                f"{policy.harm_alpha:g}: it blocks the promotion."
            )
            yield Check(
                name="not worse",
                about=c.benchmark,
                passed=False,
                sentence=sentence,
                numbers=numbers,
            )
            continue
        margin, p = c.margin or policy.margin, 1.0 if c.p_not_worse is None else c.p_not_worse
        ruled_out = p <= policy.harm_alpha
        line = f"({p_text(p)}, the line is {policy.harm_alpha:g})"
        verdict = (
            f"a fall of {points(margin)} points or more is ruled out {line}"
            if ruled_out
            else f"a fall of {points(margin)} points or more is not ruled out {line}: that blocks "
            "the promotion, until more tasks or answers show "
            "that it is not there"
        )
        sentence = f"{fact}. No fall is shown there ({p_text(c.p_worse)}), and {verdict}."
        yield Check(
            name="not worse",
            about=c.benchmark,
            passed=ruled_out,
            sentence=sentence,
            numbers=numbers | {"margin": margin, "p_not_worse": p},
        )


def tags(compared: Sequence[Comparison], policy: Policy) -> Iterator[Check]:
    """Test every tag of every benchmark, and the benchmarks that block on harm alone, together."""
    groups = [
        (f"tasks tagged {b.tag} of {c.benchmark}", b.tasks, b.before, b.after, b.p_worse)
        for c in compared
        for b in c.buckets
    ]
    whole = [c for c in compared if c.benchmark in policy.harm_only]
    groups += [
        (c.benchmark, c.before.tasks, c.before.share, c.after.share, c.p_worse) for c in whole
    ]
    if not groups:
        return
    adjusted = holm([p for *_, p in groups])
    harmed = [
        (group, p) for group, p in zip(groups, adjusted, strict=True) if p <= policy.harm_alpha
    ]
    looks = f"Holm's correction for {len(groups)} looks, the line is {policy.harm_alpha:g}"
    falls = [
        f"on the {tasks} {what} from {points(was)} to {points(now)} % ({p_text(p)})"
        for (what, tasks, was, now, _), p in harmed
    ]
    blocked_sentence = (
        f"It got worse by more than chance explains ({looks}), which blocks the promotion: "
        f"{'; '.join(falls)}."
    )
    for (what, _, before, after, _), p in harmed:  # the first check has the sentence for all
        yield Check(
            name="tags",
            about=what,
            passed=False,
            sentence=blocked_sentence,
            numbers={"before": before, "after": after, "p_holm": p},
        )
        blocked_sentence = ""
    if not harmed:
        sentence = (
            f"Looked at apart, none of {len(groups)} groups of tasks got worse by more than "
            f"chance explains ({looks})."
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


def earned(c: Comparison, earlier: Sequence[Gate], policy: Policy, facts: Facts) -> Iterator[Check]:
    """Check that the test itself is valid, and that the version is traceable."""
    used = next((gate for gate in earlier if gate.benchmark_version == c.benchmark_version), None)
    if policy.spending == "fresh" and used:
        sentence = (
            f"These tasks have decided before ({used.chain}), so that they are no longer "
            "fresh and alpha would be spent twice: draw new ones, or set "
            "policy.spending to lord or saffron."
        )
        yield Check(name="fresh tasks", about=c.benchmark, passed=False, sentence=sentence)
    if facts.earlier_tries and not policy.second_tries:
        sentence = (
            f"These weights have been decided on before: {', '.join(facts.earlier_tries)}. One "
            "decision for the same weights, or luck decides at last; policy.second_tries allows "
            "another, and spends alpha on it."
        )
        yield Check(name="one decision", about=c.benchmark, passed=False, sentence=sentence)
    if facts.picked_on == c.benchmark:
        sentence = (
            f"It was picked among the saves of its run by {c.benchmark}, which therefore flatters "
            "it: pick on validation, gate on other tasks."
        )
        yield Check(name="picked apart", about=c.benchmark, passed=False, sentence=sentence)
    if facts.unverified:
        names = ", ".join(facts.unverified)
        verdict = (
            "that blocks the promotion: a reward that can be cheated teaches to cheat"
            if policy.battery
            else "the policy lets that pass"
        )
        tried = "the exploit battery, answers that want to be paid without solving their task"
        sentence = f"The reward that trained {names} had not passed {tried}; {verdict}."
        yield Check(name="battery", about=names, passed=not policy.battery, sentence=sentence)
    if facts.missing_links:
        names = ", ".join(facts.missing_links)
        verdict = "that blocks the promotion" if policy.provenance else "the policy lets that pass"
        yield Check(
            name="provenance",
            about=names,
            passed=not policy.provenance,
            sentence=f"Its passport names what is nowhere to be found: {names}; {verdict}.",
        )
    if facts.made_elsewhere:
        sentence = (
            f"No run of this home made it ({facts.made_elsewhere}): what it was trained on, and "
            "by which reward, is not known here."
        )
        yield Check(name="provenance", about="made elsewhere", passed=True, sentence=sentence)
