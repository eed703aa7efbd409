"""Compare two scorecards task by task: the champion before, the challenger after.

In: two scorecards of one benchmark. Out: a `Comparison` with p-values, an interval and the smallest
gain that so many tasks can show. Scorecards that measure different things are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

import numpy as np
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from evaluation.promotion.policy import Policy
from evaluation.scorecard import Scorecard
from evaluation.statistics.hypothesis_tests import (
    Interval,
    bootstrap_mean,
    mcnemar,
    share_interval,
    smallest_gain,
)
from evaluation.statistics.paired import (
    PairedTest,
    announced_mean_gain,
    announced_share_gain,
    bootstrap_test,
    difference_interval,
    not_worse,
    smallest_mean_gain,
)
from evaluation.statistics.pass_at_k import curve, estimates

Counts = dict[str, tuple[int, int]]  # task -> (passing completions, completions)


class Incomparable(ValueError):
    """Scorecards that cannot be compared: they measure different things, or too little. The message
    names the difference and the fix.
    """


class Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class Rate(Plain):
    """pass@k over tasks with its 95 % interval. `solved`: a count of tasks (Wilson, wider at the
    edges), None for an estimate.
    """

    solved: int | None
    tasks: int
    share: float
    low: float
    high: float

    @classmethod
    def of(cls, card: Scorecard, k: int = 1) -> Rate:
        return cls.over(counts_of(card), k)

    @classmethod
    def over(cls, counts: Counts, k: int = 1) -> Rate:
        """Return pass@k. Raises ValueError for a task with fewer than k completions."""
        return cls.at(counts, [k])[k]

    @classmethod
    def at(cls, counts: Counts, ks: Sequence[int]) -> dict[int, Rate]:
        """Return pass@k for several k at once, from one set of bootstrap draws."""
        if is_greedy(counts) and list(ks) == [1]:
            return {1: cls.counted(sum(c for c, _ in counts.values()), len(counts))}
        return {
            at.k: cls(solved=None, tasks=len(counts), share=at.share, low=at.low, high=at.high)
            for at in curve(*_columns(counts), ks)
        }

    @classmethod
    def counted(cls, solved: int, tasks: int) -> Rate:
        low, high = share_interval(solved, tasks)
        return cls(solved=solved, tasks=tasks, share=solved / tasks, low=low, high=high)

    def __str__(self) -> str:
        of = f"{self.solved} of {self.tasks}" if self.solved is not None else f"{self.tasks} tasks"
        return (
            f"{points(self.share)} % ({of}, interval {points(self.low)} to {points(self.high)} %)"
        )


class Bucket(Plain):
    """Both scores on the tasks of one tag."""

    tag: str
    tasks: int
    before: float
    after: float
    p_worse: float


class Comparison(Plain):
    """Champion (before) and challenger (after) on the same tasks."""

    benchmark: str
    benchmark_version: str
    before: Rate
    after: Rate
    difference: float
    # 95 % interval: Tango's score interval; with several samples per task, a bootstrap over tasks.
    difference_low: float
    difference_high: float
    # One-sided: McNemar's exact test; with several samples per task, a paired bootstrap.
    p_better: float
    p_worse: float
    p_two_sided: float
    # Ids of the tasks that only the challenger solves; with several samples, where its pass@k is
    # higher.
    won: tuple[str, ...]
    lost: tuple[str, ...]
    both_solved: int
    neither_solved: int
    # Smallest true gain that so many tasks show with a power of 80 %, at the policy's alpha and the
    # measured share of changed tasks.
    smallest_gain: float | None
    k: int = 1
    # Fewest completions of any task; the key in files is `answers`.
    completions: int = Field(
        1, validation_alias=AliasChoices("completions", "answers"), serialization_alias="answers"
    )
    margin: float | None = None  # the fall that must be ruled out
    p_not_worse: float | None = None  # p-value of a fall by the margin or more
    buckets: tuple[Bucket, ...] = ()


class CleanScore(Plain):
    """Both scores without the tasks that resemble training data."""

    benchmark: str
    left_out: int
    before: Rate | None
    after: Rate | None


def counts_of(card: Scorecard, tests: str = "") -> Counts:
    """Return the scores, by all tests or by those of one set. Raises Incomparable for a sample
    without a verdict, and without samples.
    """
    if broken := [s.task_id for s in card.samples if s.verdict == "INFRA"]:
        raise Incomparable(
            f"{card.benchmark}: {len(broken)} completions have no verdict, the first for "
            f"{broken[0]}: evaluate again"
        )
    counts: Counts = {}
    for sample in card.samples:
        solved, samples = counts.get(sample.task_id, (0, 0))
        counts[sample.task_id] = solved + sample.passes(tests), samples + 1
    if not counts:
        raise Incomparable(
            f"{card.benchmark}: {card.checkpoint} has no completions: evaluate again"
        )
    return counts


def is_greedy(counts: Counts, k: int = 1) -> bool:
    """Return whether each task has one completion, so that exact tests apply."""
    return k == 1 and all(samples == 1 for _, samples in counts.values())


def compare(
    before: Scorecard, after: Scorecard, policy: Policy | None = None, k: int = 1
) -> Comparison:
    """Compare both cards task by task. Raises Incomparable unless they measure the same thing,
    ValueError for a task with fewer than k samples.
    """
    policy = policy or Policy()
    check_comparable(before, after)
    old, new = counts_of(before), counts_of(after)
    greedy = is_greedy(old, k) and is_greedy(new, k)
    was, now = values_of(old, k), values_of(new, k)
    won = tuple(task for task in old if now[task] > was[task])
    lost = tuple(task for task in old if now[task] < was[task])
    differences = [now[task] - was[task] for task in old]
    margin = (
        None
        if before.benchmark == policy.benchmark
        else policy.margins.get(before.benchmark, policy.margin)
    )
    test = paired_test(differences, greedy, margin or policy.margin)
    low, high = interval_of(differences, greedy)
    return Comparison(
        benchmark=before.benchmark,
        benchmark_version=before.benchmark_version,
        before=Rate.over(old, k),
        after=Rate.over(new, k),
        difference=float(np.mean(differences)),
        difference_low=low,
        difference_high=high,
        p_better=test.better,
        p_worse=test.worse,
        p_two_sided=test.two_sided,
        won=won,
        lost=lost,
        both_solved=sum(c > 0 and new[task][0] > 0 for task, (c, _) in old.items()),
        neither_solved=sum(c == 0 and new[task][0] == 0 for task, (c, _) in old.items()),
        smallest_gain=_smallest_gain(differences, greedy, policy.alpha),
        k=k,
        completions=min(n for counts in (old, new) for _, n in counts.values()),
        margin=margin,
        p_not_worse=test.not_worse if margin else None,
        buckets=_buckets(before, was, now, greedy, policy),
    )


def announced_gain(card: Scorecard, alpha: float, k: int = 1) -> float | None:
    """Return the smallest gain that this suite shows with 80 % power, before a challenger is
    evaluated: half of the tasks are expected to agree except for the gain
    (`paired.expected_spread`). None if no gain can be shown.
    """
    counts = counts_of(card)
    if is_greedy(counts, k):
        return announced_share_gain(sum(c for c, _ in counts.values()), len(counts), alpha)
    return announced_mean_gain(list(values_of(counts, k).values()), alpha)


def clean_score(
    benchmark: str, before: Scorecard, after: Scorecard, suspect: Iterable[str], k: int = 1
) -> CleanScore | None:
    """Return both scores without the suspect tasks; None if the benchmark has none, no rates if
    every task is suspect.
    """
    old, new = counts_of(before), counts_of(after)
    suspect_tasks = old.keys() & set(suspect)
    if not suspect_tasks:
        return None
    clean_counts = [
        {task: count for task, count in counts.items() if task not in suspect_tasks}
        for counts in (old, new)
    ]
    rates = [Rate.over(counts, k) if counts else None for counts in clean_counts]
    return CleanScore(
        benchmark=benchmark, left_out=len(suspect_tasks), before=rates[0], after=rates[1]
    )


def check_comparable(before: Scorecard, after: Scorecard) -> None:
    """Check that both were made alike. Raises Incomparable. The settings behind a file's
    completions are unknown, and not checked.
    """
    for name in ("benchmark", "benchmark_version", "harness_version", "sampling"):
        ours, theirs = getattr(before, name), getattr(after, name)
        if ours != theirs and not (name == "sampling" and not (ours and theirs)):
            what = f"different {name.replace('_', ' ')}s ({_short(ours)} and {_short(theirs)})"
            raise Incomparable(
                f"{before.checkpoint} and {after.checkpoint} were scored with {what}: "
                "evaluate both on the same one"
            )
    tasks = [{sample.task_id for sample in card.samples} for card in (before, after)]
    if odd := sorted(tasks[0] ^ tasks[1]):
        raise Incomparable(
            f"{before.benchmark}: {len(odd)} tasks are in one scorecard only, the first is "
            f"{odd[0]}: evaluate both on all tasks"
        )


def values_of(counts: Counts, k: int = 1) -> dict[str, float]:
    """Return pass@k of each task. Raises Incomparable for a task with fewer than k completions."""
    if short := next((task for task, (_, n) in counts.items() if n < k), None):
        raise Incomparable(
            f"pass@{k} needs {k} completions per task, {short} has {counts[short][1]}: generate "
            "more or lower k"
        )
    return dict(zip(counts, estimates(*_columns(counts), k), strict=True))


def _columns(counts: Counts) -> tuple[list[int], list[int]]:
    return [c for c, _ in counts.values()], [n for _, n in counts.values()]


def paired_test(differences: Sequence[float], greedy: bool, margin: float) -> PairedTest:
    if not greedy:
        return bootstrap_test(differences, margin)
    won, lost = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return PairedTest(*mcnemar(won, lost), not_worse(won, lost, len(differences), margin))


def interval_of(differences: Sequence[float], greedy: bool) -> Interval:
    if not greedy:
        return bootstrap_mean(differences)
    return difference_interval(
        sum(d > 0 for d in differences), sum(d < 0 for d in differences), len(differences)
    )


def _smallest_gain(differences: Sequence[float], greedy: bool, alpha: float) -> float | None:
    if greedy:
        return smallest_gain(
            sum(d != 0 for d in differences) / len(differences), len(differences), alpha
        )
    return smallest_mean_gain(float(np.std(differences)), len(differences), alpha)


def _buckets(
    card: Scorecard,
    was: Mapping[str, float],
    now: Mapping[str, float],
    greedy: bool,
    policy: Policy,
) -> tuple[Bucket, ...]:
    members: dict[str, list[str]] = {}
    for task, tags in {sample.task_id: sample.tags for sample in card.samples}.items():
        for tag in set(tags):
            if policy.tags is None or tag.startswith(tuple(policy.tags)):
                members.setdefault(tag, []).append(task)
    return tuple(
        Bucket(
            tag=tag,
            tasks=len(tasks),
            before=sum(was[t] for t in tasks) / len(tasks),
            after=sum(now[t] for t in tasks) / len(tasks),
            p_worse=paired_test(
                [now[t] - was[t] for t in sorted(tasks)], greedy, policy.margin
            ).worse,
        )
        for tag, tasks in sorted(members.items())
        if policy.tag_tasks <= len(tasks) < len(was)  # a tag of all tasks is the benchmark
    )


def points(share: float) -> str:
    return f"{100 * share:.1f}"


def signed(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def p_text(p_value: float) -> str:
    """Return a p-value as text: "p = 0.013", "p = 0.0004" or "p < 0.0001"."""
    if p_value < 0.0001:
        return "p < 0.0001"
    return f"p = {p_value:.3f}" if p_value >= 0.001 else f"p = {p_value:.4f}"


def count(tasks: float) -> str:
    """Return a number of tasks as text, rounded up: "1 task", "2 tasks"."""
    whole = ceil(tasks - 1e-9)
    return f"{whole} task{'' if whole == 1 else 's'}"


def odds(p_value: float) -> str:
    """Return a p-value in words: "less often than once in 10,000 times", "about once in 250 times",
    "in about 38 of 100 cases".
    """
    if p_value < 0.0001:
        return "less often than once in 10,000 times"
    return (
        f"about once in {1 / p_value:,.0f} times"
        if p_value < 0.095
        else f"in about {100 * p_value:.0f} of 100 cases"
    )


def _short(value: object) -> str:
    return str(value)[:60] if value != "" else "none"
