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
from evaluation.promotion.checks import Check, Facts, holds, identical, limits, tags, validity, wins
from evaluation.promotion.comparison import (
    CleanScore,
    Comparison,
    check_equal_n,
    clean_score,
    compare,
    count,
    signed,
)
from evaluation.promotion.method_names import score_words
from evaluation.promotion.policy import Policy
from evaluation.promotion.rate import Plain, Rate, points
from evaluation.scorecard import Scorecard
from evaluation.statistics.alpha_spending import next_level
from evaluation.statistics.hypothesis_tests import tasks_for_gain


class ScoredModel(Plain):
    name: str
    content_hash: str


class Decision(Plain):
    kind: Literal["install", "promote", "refuse"]
    champion: ScoredModel | None
    challenger: ScoredModel
    score: Rate  # the challenger's, on the gated benchmark
    comparison: Comparison | None  # None if there was no champion
    others: tuple[Comparison, ...]
    reasons: tuple[str, ...]
    policy: Policy
    # The alpha of this gate; None: the policy's.
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
    if champion is None:
        return _first_version(challenger, policy)
    earlier = [gate for gate in facts.gates if gate.benchmark == challenger.benchmark]
    level = next_level(policy.spending, policy.alpha, earlier)
    gate_policy = policy.model_copy(update={"alpha": level})
    comparison = compare(champion, challenger, gate_policy, policy.k)
    other_comparisons = tuple(compare(before, after, policy) for before, after in others)
    for before, after in ((champion, challenger), *others):
        check_equal_n(before, after)
    pairs = [(champion, challenger, policy.k), *((before, after, 1) for before, after in others)]
    clean_scores = (
        clean_score(a.benchmark, a, b, facts.suspects.get(a.benchmark, ()), k) for a, b, k in pairs
    )
    clean = tuple(score for score in clean_scores if score)
    same = champion.checkpoint_hash == challenger.checkpoint_hash
    checks = (
        *([identical(challenger)] if same else wins(comparison, policy, level)),
        *holds(other_comparisons, policy),
        *tags((comparison, *other_comparisons), policy),
        *limits(policy, facts),
        *validity(comparison, earlier, policy, facts),
    )
    return Decision(
        kind="promote" if all(check.passed for check in checks) else "refuse",
        champion=_candidate(champion),
        challenger=_candidate(challenger),
        score=Rate.of(challenger, policy.k),
        comparison=comparison,
        others=other_comparisons,
        reasons=_reasons(comparison, checks, clean, level, policy),
        policy=policy,
        level=level,
        checks=checks,
        clean=clean,
        facts=facts,
    )


def _first_version(challenger: Scorecard, policy: Policy) -> Decision:
    score = Rate.of(challenger, policy.k)
    reasons = (
        "There was no champion to beat: this is a first version, not an improvement.",
        f"It solves {score} of {challenger.benchmark}; the next challenger is compared with it.",
    )
    return Decision(
        kind="install",
        champion=None,
        challenger=_candidate(challenger),
        score=score,
        comparison=None,
        others=(),
        reasons=reasons,
        policy=policy,
    )


def _candidate(card: Scorecard) -> ScoredModel:
    return ScoredModel(name=card.checkpoint, content_hash=card.checkpoint_hash)


def _reasons(
    comparison: Comparison,
    checks: Sequence[Check],
    clean: Sequence[CleanScore],
    level: float,
    policy: Policy,
) -> tuple[str, ...]:
    """Return the result, the sentences of the checks, the clean scores, and the power of the test
    if it found neither a gain nor a fall.
    """
    won = all(check.passed for check in checks if check.name in ("win", "gain"))
    undecided = not won and comparison.p_worse > level
    return (
        _result(comparison),
        *(check.sentence for check in checks if check.sentence),
        *map(_clean, clean),
        *([_power(comparison, level, policy.minimum_gain)] if undecided else []),
    )


def _result(c: Comparison) -> str:
    single = c.k == 1 and c.completions == 1 and c.most_completions is None
    several = "" if single else f" ({score_words(c.k, c.completions, c.most_completions)})"
    split = f"{c.both_solved} both solve, {c.neither_solved} neither"
    changed = (
        (
            f"It wins {count(len(c.won))} that the champion fails and loses {len(c.lost)} that "
            f"the champion solves; {split}."
        )
        if single
        else (
            f"It solves {count(len(c.won))} more often than the champion and {len(c.lost)} less "
            f"often; {split}."
        )
    )
    related = f" Related tasks count together: {c.clusters} clusters." if c.clusters else ""
    return (
        f"On {c.benchmark}{several} the champion solves {c.before}, the challenger {c.after}: a "
        f"difference of {signed(c.difference)} points "
        f"(interval {signed(c.difference_low)} to {signed(c.difference_high)}). {changed}{related}"
    )


def _clean(c: CleanScore) -> str:
    if c.before is None or c.after is None:
        return (
            f"All {c.left_out} tasks of {c.benchmark} resemble training data: there is no clean "
            "score."
        )
    return (
        f"Without the {c.left_out} tasks of {c.benchmark} that resemble training data, the "
        f"champion solves {c.before}, the challenger {c.after}."
    )


def _power(c: Comparison, level: float, minimum_gain: float) -> str:
    """Return the smallest gain that this suite shows, and how many tasks would show the policy's
    smallest gain.
    """
    tasks = c.before.tasks
    if c.smallest_gain is None:
        return f"{tasks} tasks are too few to show any gain at {level:.3g}: gate on more tasks."
    power = (
        f"With {tasks} tasks, a true gain of {points(c.smallest_gain)} points or more is found "
        "four times in five; a smaller one is often missed."
    )
    if minimum_gain <= 0:
        return f"{power} More tasks find smaller gains."
    if c.smallest_gain <= minimum_gain:
        return (
            f"{power} A new version must gain {points(minimum_gain)} points; such a gain would "
            "probably have been found."
        )
    if c.test == "mcnemar":
        needed = tasks_for_gain(minimum_gain, (len(c.won) + len(c.lost)) / tasks, level)
    else:
        # The error of a mean falls with the square root of the number of tasks.
        needed = ceil(tasks * (c.smallest_gain / minimum_gain) ** 2)
    return (
        f"{power} A new version must gain {points(minimum_gain)} points; to find that four times "
        f"in five takes about {needed:,} tasks."
    )
