"""The gate: whether a challenger replaces the champion, as a pure function of scorecards, facts and
policy.

In: both scorecards of the gated benchmark, pairs of scorecards of other benchmarks, facts about the
challenger, the policy. Out: a `Decision` with its reasons in sentences. Nothing is read or written
here; resources/registry/ledger.py records decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Literal

from artifacts.hashing import hash_data
from evaluation.promotion.checks import Check, Facts, earned, holds, identical, limits, tags, wins
from evaluation.promotion.comparison import (
    Bucket,
    CleanScore,
    Comparison,
    Incomparable,
    Plain,
    Rate,
    announced_gain,
    clean_score,
    compare,
    count,
    p_text,
    points,
    signed,
)
from evaluation.promotion.methods import recorded_test, score_words
from evaluation.promotion.policy import Policy
from evaluation.promotion.regression import Regression, regressed
from evaluation.scorecard import Scorecard
from evaluation.statistics.alpha_spending import Gate, next_level
from evaluation.statistics.hypothesis_tests import tasks_for_gain

__all__ = [
    "Bucket",
    "Candidate",
    "Check",
    "CleanScore",
    "Comparison",
    "Decision",
    "Facts",
    "Gate",
    "Incomparable",
    "Policy",
    "Rate",
    "Regression",
    "announced",
    "compare",
    "decide",
    "p_text",
    "points",
    "regressed",
    "signed",
]


class Candidate(Plain):
    name: str
    content_hash: str


class Decision(Plain):
    kind: Literal["install", "promote", "refuse"]
    champion: Candidate | None
    challenger: Candidate
    score: Rate  # the challenger's, on the gated benchmark
    comparison: Comparison | None  # None if there was no champion
    others: tuple[Comparison, ...]
    reasons: tuple[str, ...]
    policy: Policy
    # The alpha of this gate. None in decisions from before alpha spending: their level is the
    # policy's.
    level: float | None = None
    checks: tuple[Check, ...] = ()
    clean: tuple[CleanScore, ...] = ()
    facts: Facts = Facts()

    @property
    def promoted(self) -> bool:
        return self.kind != "refuse"

    @property
    def p_value(self) -> float | None:
        return self.comparison.p_better if self.comparison else None

    @property
    def content_hash(self) -> str:
        return hash_data(self.model_dump(mode="json"))

    def to_text(self) -> str:
        verdict = {
            "install": "installed as the first champion",
            "promote": "promoted",
            "refuse": "not promoted",
        }[self.kind]
        return "\n".join(
            [f"{self.challenger.name}: {verdict}.", *(f"- {reason}" for reason in self.reasons)]
        )

    def gate(self, chain: str) -> Gate | None:
        """Return the entry that the next gate's alpha depends on; None if nothing was tested."""
        c = self.comparison
        if c is None:
            return None
        level = self.level if self.level is not None else self.policy.alpha
        return Gate(
            chain=chain,
            benchmark=c.benchmark,
            benchmark_version=c.benchmark_version,
            p_value=c.p_better,
            level=level,
        )


def decide(
    champion: Scorecard | None,
    challenger: Scorecard,
    policy: Policy | None = None,
    others: Sequence[tuple[Scorecard, Scorecard]] = (),
    facts: Facts | None = None,
) -> Decision:
    """Decide whether the challenger becomes champion. `others`: (champion's, challenger's) cards of
    further benchmarks, on which it must not lose.

    All conditions of the policy must hold; a conjunction of tests, each at its own level, needs no
    correction (intersection-union test: the chance of passing all is at most that of passing the
    one that should have failed). Raises Incomparable if a pair differs in benchmark, version,
    tasks, harness or sampling, and ValueError for a missing verdict (INFRA) or a task with fewer
    than k samples.
    """
    policy, facts = policy or Policy(), facts or Facts()
    score, new = (
        Rate.of(challenger, policy.k),
        Candidate(name=challenger.checkpoint, content_hash=challenger.checkpoint_hash),
    )
    reasons: tuple[str, ...]
    if champion is None:
        reasons = (
            (
                "There was no champion yet, so nothing had to be beaten: this is a first version, "
                "not an improvement shown."
            ),
            (
                f"It solves {score} of {challenger.benchmark}; the next challenger is measured "
                "against it."
            ),
        )
        return Decision(
            kind="install",
            champion=None,
            challenger=new,
            score=score,
            comparison=None,
            others=(),
            reasons=reasons,
            policy=policy,
        )
    earlier = [gate for gate in facts.gates if gate.benchmark == challenger.benchmark]
    level = next_level(policy.spending, policy.alpha, earlier)
    compared = compare(champion, challenger, policy.model_copy(update={"alpha": level}), policy.k)
    further = tuple(compare(before, after, policy) for before, after in others)
    pairs = [(champion, challenger, policy.k), *((before, after, 1) for before, after in others)]
    clean = [
        clean_score(a.benchmark, a, b, facts.suspects.get(a.benchmark, ()), k) for a, b, k in pairs
    ]
    checks = (
        *(
            [identical(challenger)]
            if champion.checkpoint_hash == challenger.checkpoint_hash
            else wins(compared, policy, level)
        ),
        *holds(further, policy),
        *tags((compared, *further), policy),
        *limits(policy, facts),
        *earned(compared, earlier, policy, facts),
    )
    kind: Literal["promote", "refuse"] = (
        "promote" if all(check.passed for check in checks) else "refuse"
    )
    old = Candidate(name=champion.checkpoint, content_hash=champion.checkpoint_hash)
    won = all(check.passed for check in checks if check.name in ("win", "gain"))
    reasons = (
        _result(compared),
        *(check.sentence for check in checks if check.sentence),
        *(_clean(c) for c in clean if c),
        *(
            []
            if won or compared.p_worse <= level
            else [_power(compared, level, policy.minimum_gain)]
        ),
    )
    return Decision(
        kind=kind,
        champion=old,
        challenger=new,
        score=score,
        comparison=compared,
        others=further,
        reasons=reasons,
        policy=policy,
        level=level,
        checks=checks,
        clean=tuple(c for c in clean if c),
        facts=facts,
    )


def _result(c: Comparison) -> str:
    single = c.k == 1 and c.answers == 1 and c.most_answers is None
    what = "" if single else f" ({score_words(c.k, c.answers, c.most_answers)})"
    split = f"{c.both_solved} both solve, {c.neither_solved} neither"
    changed = (
        (
            f"It wins {count(len(c.won))} that the champion fails and loses {len(c.lost)} that "
            f"the champion solves; {split}."
        )
        if single
        else (
            f"It solves {count(len(c.won))} more reliably than the champion and {len(c.lost)} "
            f"less; {split}."
        )
    )
    related = f" Related tasks count together: {c.clusters} clusters." if c.clusters else ""
    return (
        f"On {c.benchmark}{what} the champion solves {c.before}, the challenger {c.after}: a "
        f"difference of {signed(c.difference)} points "
        f"(interval {signed(c.difference_low)} to {signed(c.difference_high)}). {changed}{related}"
    )


def _clean(c: CleanScore) -> str:
    if c.before is None or c.after is None:
        return (
            f"All {c.left_out} tasks of {c.benchmark} resemble something in the training data: no "
            "clean score is left."
        )
    return (
        f"Without the {c.left_out} tasks of {c.benchmark} that resemble something in the "
        f"training data, the champion solves {c.before}, "
        f"the challenger {c.after}."
    )


def _power(c: Comparison, level: float, asked: float) -> str:
    """Return the smallest gain that this suite shows, and how many tasks would show the policy's
    smallest gain.
    """
    tasks = c.before.tasks
    if c.smallest_gain is None:
        return f"{tasks} tasks are too few to show any gain at {level:.3g}: gate on more tasks."
    seen = (
        f"What this test can see: with {tasks} tasks a true gain of {points(c.smallest_gain)} "
        "points or more is found four times in five; "
        "a smaller one may well be there and stay unseen."
    )
    if asked <= 0:
        return f"{seen} More tasks or a better challenger would tell."
    if c.smallest_gain <= asked:
        return (
            f"{seen} A new version must bring {points(asked)} points: had it brought them, that "
            "would most likely have been seen."
        )
    if recorded_test(c.model_dump()) == "mcnemar":
        needed = tasks_for_gain(asked, (len(c.won) + len(c.lost)) / tasks, level)
    else:
        # The error of a mean falls with the square root of the number of tasks.
        needed = ceil(tasks * (c.smallest_gain / asked) ** 2)
    return (
        f"{seen} To find {points(asked)} points as surely, the least that a new version must "
        f"bring, takes about {needed:,} tasks."
    )


def announced(champion: Scorecard, policy: Policy, gates: Sequence[Gate] = ()) -> str:
    """Return in words which gain the gate can show, before there is a challenger."""
    level = next_level(
        policy.spending,
        policy.alpha,
        [gate for gate in gates if gate.benchmark == champion.benchmark],
    )
    gain, tasks = (
        announced_gain(champion, level, policy.k),
        len({s.task_id for s in champion.samples}),
    )
    if gain is None:
        return f"{tasks} tasks of {champion.benchmark} are too few to show any gain at {level:.3g}."
    return (
        f"{tasks} tasks of {champion.benchmark} show a true gain of {points(gain)} points in "
        f"pass@{policy.k} four times in five, at {level:.3g}, "
        "if half of the tasks are decided by the task alone."
    )
