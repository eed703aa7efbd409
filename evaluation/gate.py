"""The gate: whether a challenger replaces the champion, as a pure function of scorecards and policy.

In: both scorecards of the gated benchmark, pairs of scorecards of other benchmarks, the policy. Out: a `Decision` with its reasons in sentences.
Nothing is read or written here; resources/ledger.py keeps what was decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from artifacts.hashing import hash_data
from evaluation.scorecard import Scorecard
from evaluation.statistics import bootstrap_mean, fisher_fall, mcnemar, smallest_gain, wilson


class Policy(BaseModel):
    """What a challenger must show before it replaces the champion."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    alpha: float = Field(0.01, gt=0, lt=0.5)
    """Accepted chance that a challenger no better than the champion is promoted. A nightly gate asks 365 times a year: 0.05 would let 18 such pass,
    0.01 at most 4. And 400 tasks show a true gain of 10 points at 0.01 seven to nine times in ten (benchmarks/gate_error.py)."""
    minimum_gain: float = Field(0.02, ge=0, lt=1)
    """Smallest observed gain of pass@1 worth a new version, as a share: 0.02 is two points. With many tasks a sure gain can still be too small."""
    harm_alpha: float = Field(0.05, gt=0, lt=0.5)
    """A fall on another benchmark that chance explains with no more than this probability blocks the promotion; laxer than alpha, to protect more."""


class Incomparable(ValueError):
    """Two scorecards that do not measure the same thing."""


class Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rate(Plain):
    """A share of tasks and its 95 % interval (Wilson)."""

    solved: int
    tasks: int
    share: float
    low: float
    high: float

    @classmethod
    def of(cls, card: Scorecard) -> Rate:
        return cls.counted(sum(card.solved.values()), len(card.solved))

    @classmethod
    def counted(cls, solved: int, tasks: int) -> Rate:
        low, high = wilson(solved, tasks)
        return cls(solved=solved, tasks=tasks, share=solved / tasks, low=low, high=high)

    def __str__(self) -> str:
        return f"{points(self.share)} % ({self.solved} of {self.tasks}, interval {points(self.low)} to {points(self.high)} %)"


class Candidate(Plain):
    name: str
    content_hash: str


class Comparison(Plain):
    """Champion (before) and challenger (after) on the same tasks."""

    benchmark: str
    benchmark_version: str
    before: Rate
    after: Rate
    difference: float
    difference_low: float  # 95 %, bootstrap over tasks
    difference_high: float
    p_better: float  # one-sided McNemar, exact: the gate's p-value
    p_worse: float
    p_two_sided: float
    won: tuple[str, ...]  # ids of tasks that only the challenger solves
    lost: tuple[str, ...]  # ids of tasks that only the champion solves
    both_solved: int
    neither_solved: int
    smallest_gain: float | None  # true gain that so many tasks show with a chance of 80 %, at the policy's alpha and the seen share of changed tasks


class Decision(Plain):
    kind: Literal["install", "promote", "refuse"]
    champion: Candidate | None
    challenger: Candidate
    score: Rate  # the challenger's, on the gated benchmark
    comparison: Comparison | None  # None where there was no champion
    others: tuple[Comparison, ...]
    reasons: tuple[str, ...]
    policy: Policy

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
        verdict = {"install": "installed as the first champion", "promote": "promoted", "refuse": "not promoted"}[self.kind]
        return "\n".join([f"{self.challenger.name}: {verdict}.", *(f"- {reason}" for reason in self.reasons)])


def decide(
    champion: Scorecard | None, challenger: Scorecard, policy: Policy | None = None, others: Sequence[tuple[Scorecard, Scorecard]] = ()
) -> Decision:
    """Whether the challenger becomes champion. `others`: (champion's, challenger's) cards of further benchmarks, on which it must not lose.

    Raises Incomparable where a pair differs in benchmark, version, tasks, harness or sampling, and ValueError where a verdict is missing (INFRA).
    """
    policy = policy or Policy()
    score, new = Rate.of(challenger), Candidate(name=challenger.checkpoint, content_hash=challenger.checkpoint_hash)
    reasons: tuple[str, ...]
    if champion is None:
        reasons = (
            "There was no champion yet, so nothing had to be beaten: this is a first version, not an improvement shown.",
            f"It solves {score} of {challenger.benchmark}; the next challenger is measured against it.",
        )
        return Decision(kind="install", champion=None, challenger=new, score=score, comparison=None, others=(), reasons=reasons, policy=policy)
    compared = compare(champion, challenger, policy)
    further = tuple(compare(before, after, policy) for before, after in others)
    same = champion.checkpoint_hash == challenger.checkpoint_hash
    wins = compared.p_better <= policy.alpha and compared.difference >= policy.minimum_gain
    harmed = [c for c in further if c.p_worse <= policy.harm_alpha]
    reasons = (
        _result(compared),
        *([_identical(challenger)] if same else [_significance(compared, policy), *_gain(compared, policy)]),
        *(_harm(c, policy) for c in further),
        *([] if wins or same or compared.p_worse <= policy.alpha else [_power(compared, policy)]),
    )
    old = Candidate(name=champion.checkpoint, content_hash=champion.checkpoint_hash)
    kind: Literal["promote", "refuse"] = "promote" if wins and not harmed and not same else "refuse"
    return Decision(kind=kind, champion=old, challenger=new, score=score, comparison=compared, others=further, reasons=reasons, policy=policy)


def compare(before: Scorecard, after: Scorecard, policy: Policy | None = None) -> Comparison:
    """Both cards task by task. Raises Incomparable unless they measure the same thing."""
    policy = policy or Policy()
    _check_comparable(before, after)
    old, new = before.solved, after.solved
    won = tuple(task for task in old if new[task] and not old[task])
    lost = tuple(task for task in old if old[task] and not new[task])
    test = mcnemar(len(won), len(lost))
    low, high = bootstrap_mean([new[task] - old[task] for task in old])
    return Comparison(
        benchmark=before.benchmark, benchmark_version=before.benchmark_version, before=Rate.of(before), after=Rate.of(after),
        difference=(len(won) - len(lost)) / len(old), difference_low=low, difference_high=high,
        p_better=test.better, p_worse=test.worse, p_two_sided=test.two_sided, won=won, lost=lost,
        both_solved=sum(old[task] and new[task] for task in old), neither_solved=sum(not old[task] and not new[task] for task in old),
        smallest_gain=smallest_gain((len(won) + len(lost)) / len(old), len(old), policy.alpha),
    )  # fmt: skip


class Regression(Plain):
    """The champion scored again on other tasks: whether it fell by more than chance explains."""

    fell: bool
    p_value: float
    before: Rate
    after: Rate
    reason: str


def regressed(before: Scorecard, after: Scorecard, alpha: float = 0.01) -> Regression:
    """Compares one checkpoint's scores on two draws of a benchmark: Fisher's exact test, since the tasks are others.

    A champion was picked for a good score, so that a small fall on fresh tasks is expected: hence a strict alpha.
    Raises Incomparable where the cards belong to different checkpoints or benchmarks.
    """
    if before.checkpoint_hash != after.checkpoint_hash:
        raise Incomparable(f"a regression is about one checkpoint, got {before.checkpoint} and {after.checkpoint}: compare those with the gate")
    if before.benchmark != after.benchmark:
        raise Incomparable(f"scores on {before.benchmark} and {after.benchmark} say nothing about each other: score the same benchmark again")
    old, new = Rate.of(before), Rate.of(after)
    p_value = fisher_fall(old.solved, old.tasks, new.solved, new.tasks)
    fell = p_value <= alpha
    judged = f"a fall that chance explains with {p_text(p_value)}" if fell else f"within what chance explains ({p_text(p_value)})"
    reason = f"{after.checkpoint} solved {old} of {before.benchmark} before and solves {new} of fresh tasks: {judged}; the line is {alpha:g}."
    return Regression(fell=fell, p_value=p_value, before=old, after=new, reason=reason)


def _check_comparable(before: Scorecard, after: Scorecard) -> None:
    for name in ("benchmark", "benchmark_version", "harness_version", "sampling"):
        ours, theirs = getattr(before, name), getattr(after, name)
        if ours != theirs:
            what = f"different {name.replace('_', ' ')}s ({_short(ours)} and {_short(theirs)})"
            raise Incomparable(f"{before.checkpoint} and {after.checkpoint} were scored with {what}: evaluate both on the same one")
    if odd := sorted(before.solved.keys() ^ after.solved.keys()):
        raise Incomparable(f"{before.benchmark}: {len(odd)} tasks are in one scorecard only, the first is {odd[0]}: evaluate both on all tasks")


def _result(c: Comparison) -> str:
    return (
        f"On {c.benchmark} the champion solves {c.before}, the challenger {c.after}: a difference of {signed(c.difference)} points "
        f"(interval {signed(c.difference_low)} to {signed(c.difference_high)}). It wins {len(c.won)} tasks that the champion fails and loses "
        f"{len(c.lost)} that the champion solves; {c.both_solved} both solve, {c.neither_solved} neither."
    )


def _identical(challenger: Scorecard) -> str:
    return f"The challenger has the very weights of the champion ({challenger.checkpoint_hash[:12]}): there is nothing to promote."


def _significance(c: Comparison, policy: Policy) -> str:
    if not c.won and not c.lost:
        return "Both solve exactly the same tasks, so that nothing speaks for either."
    if c.difference < 0:
        luck = "more than bad luck explains" if c.p_worse <= policy.alpha else "which may be bad luck"
        return f"The challenger solves fewer tasks than the champion, {luck} ({p_text(c.p_worse)}, exact McNemar test): there is no gain to promote."
    coin = f"Were the two equally good, each changed task would be a coin toss, and a result this good would come up with {p_text(c.p_better)}"
    verdict = "so that the gain counts as real" if c.p_better <= policy.alpha else "so that luck is not ruled out"
    return f"{coin} (exact McNemar test, one-sided); the line is {policy.alpha:g}, {verdict}."


def _gain(c: Comparison, policy: Policy) -> list[str]:
    if c.p_better > policy.alpha:
        return []
    enough = c.difference >= policy.minimum_gain
    relation = "at least" if enough else "less than"
    return [f"The gain of {signed(c.difference)} points is {relation} the {points(policy.minimum_gain)} points that a new version must bring."]


def _harm(c: Comparison, policy: Policy) -> str:
    fact = f"On {c.benchmark}: champion {c.before}, challenger {c.after}"
    if c.p_worse <= policy.harm_alpha:
        return f"{fact}. That is a fall which chance explains with {p_text(c.p_worse)}, at most {policy.harm_alpha:g}: it blocks the promotion."
    return f"{fact}. No fall is shown there ({p_text(c.p_worse)}, the line is {policy.harm_alpha:g})."


def _power(c: Comparison, policy: Policy) -> str:
    if c.smallest_gain is None:
        return f"{c.before.tasks} tasks are too few to show any gain at {policy.alpha:g}: gate on more tasks."
    return (
        f"What this test can see: with {c.before.tasks} tasks a true gain of {points(c.smallest_gain)} points or more is found four times in five; "
        "a smaller one may well be there and stay unseen. More tasks or a better challenger would tell."
    )


def points(share: float) -> str:
    return f"{100 * share:.1f}"


def signed(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def p_text(p_value: float) -> str:
    """ "p = 0.013", "p = 0.0004" or "p < 0.0001": as many digits as mean something."""
    if p_value < 0.0001:
        return "p < 0.0001"
    return f"p = {p_value:.3f}" if p_value >= 0.001 else f"p = {p_value:.4f}"


def _short(value: object) -> str:
    return str(value)[:60] if value != "" else "none"
