"""Compare two scorecards task by task: the champion before, the challenger after.

In: two scorecards of one benchmark. Out: a `Comparison` with p-values, an interval and the smallest
gain that so many tasks can show. Scorecards that measure different things are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

import numpy as np

from evaluation.promotion.policy import Policy
from evaluation.promotion.rate import (
    ClusterOf,
    Incomparable,
    Plain,
    Rate,
    clusters_in,
    clusters_of,
    counts_of,
    is_greedy,
    values_of,
)
from evaluation.scorecard import Scorecard
from evaluation.statistics.bounded_mean import Clusters
from evaluation.statistics.hypothesis_tests import smallest_gain
from evaluation.statistics.paired import (
    TestName,
    announced_mean_gain,
    announced_share_gain,
    choose_test,
    clustered_spread,
    paired_interval,
    paired_not_worse,
    paired_test,
    smallest_mean_gain,
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
    # 95 % interval and one-sided p-values, by `test`
    difference_low: float
    difference_high: float
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
    completions: int = 1  # fewest of any task
    most_completions: int | None = None  # most of any task, if that differs
    test: TestName
    clusters: int | None = None  # clusters of tasks that the test is over
    margin: float | None = None  # the fall that must be ruled out
    p_not_worse: float | None = None  # p-value of a fall by the margin or more
    buckets: tuple[Bucket, ...] = ()


class CleanScore(Plain):
    """Both scores without the tasks that resemble training data."""

    benchmark: str
    left_out: int
    before: Rate | None
    after: Rate | None


def compare(
    before: Scorecard,
    after: Scorecard,
    policy: Policy | None = None,
    k: int = 1,
    target_power: float = 0.8,
) -> Comparison:
    """Compare both cards task by task. target_power: of the smallest gain. Raises Incomparable
    unless they measure the same thing, ValueError for a task with fewer than k samples.
    """
    policy = policy or Policy()
    check_comparable(before, after)
    old, new = counts_of(before), counts_of(after)
    was, now = values_of(old, k), values_of(new, k)
    cluster_of = clusters_of(before, after)
    clusters = clusters_in(old, cluster_of)
    test = choose_test(is_greedy(old, k) and is_greedy(new, k), clusters)
    differences = [now[task] - was[task] for task in old]
    margin = (
        None
        if before.benchmark == policy.benchmark
        else policy.margins.get(before.benchmark, policy.margin)
    )
    p_values = paired_test(test, differences, clusters)
    low, high = paired_interval(test, differences, clusters)
    completions = [n for counts in (old, new) for _, n in counts.values()]
    return Comparison(
        benchmark=before.benchmark,
        benchmark_version=before.benchmark_version,
        before=Rate.over(old, k, cluster_of),
        after=Rate.over(new, k, cluster_of),
        difference=float(np.mean(differences)),
        difference_low=low,
        difference_high=high,
        p_better=p_values.better,
        p_worse=p_values.worse,
        p_two_sided=p_values.two_sided,
        won=tuple(task for task in old if now[task] > was[task]),
        lost=tuple(task for task in old if now[task] < was[task]),
        both_solved=sum(c > 0 and new[task][0] > 0 for task, (c, _) in old.items()),
        neither_solved=sum(c == 0 and new[task][0] == 0 for task, (c, _) in old.items()),
        smallest_gain=_smallest_gain(differences, test, clusters, policy.alpha, target_power),
        k=k,
        completions=min(completions),
        most_completions=max(completions) if max(completions) > min(completions) else None,
        test=test,
        clusters=len(set(clusters)) if clusters else None,
        margin=margin,
        p_not_worse=paired_not_worse(test, differences, margin, clusters) if margin else None,
        buckets=_buckets(before, was, now, test, cluster_of, policy),
    )


def announced_gain(card: Scorecard, alpha: float, k: int = 1) -> float | None:
    """Return the smallest gain that this suite shows with 80 % power, before a challenger is
    evaluated: half of the tasks are expected to agree except for the gain
    (`paired.expected_spread`). None if no gain can be shown.
    """
    counts = counts_of(card)
    clusters = clusters_in(counts, clusters_of(card))
    if is_greedy(counts, k) and clusters is None:
        return announced_share_gain(sum(int(c) for c, _ in counts.values()), len(counts), alpha)
    return announced_mean_gain(list(values_of(counts, k).values()), alpha, clusters=clusters)


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
    cluster_of = clusters_of(before, after)
    rates = [Rate.over(counts, k, cluster_of) if counts else None for counts in clean_counts]
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
            f"{before.benchmark}: {count(len(odd))} in one scorecard only, the first is "
            f"{odd[0]}: evaluate both on all tasks"
        )
    hashes = after.task_hashes
    if odd := sorted(t for t, each in before.task_hashes.items() if hashes.get(t, each) != each):
        raise Incomparable(
            f"{before.benchmark}: {count(len(odd))} with another text in each log, the first is "
            f"{odd[0]}: evaluate both on the same data"
        )


def check_equal_n(before: Scorecard, after: Scorecard) -> None:
    """Check that both have as many completions of each task, as a gate needs. Raises
    Incomparable.
    """
    old, new = (Counter(sample.task_id for sample in card.samples) for card in (before, after))
    if unequal := sorted(task for task in old if old[task] != new[task]):
        task = unequal[0]
        raise Incomparable(
            f"{before.benchmark}: {count(len(unequal))} with unequal numbers of completions, "
            f"{task} has {old[task]} of {before.checkpoint} and {new[task]} of {after.checkpoint}: "
            "evaluate both with the same n"
        )


def _smallest_gain(
    differences: Sequence[float],
    test: TestName,
    clusters: Clusters,
    alpha: float,
    target_power: float,
) -> float | None:
    tasks = len(differences)
    if test == "mcnemar":
        changed = sum(d != 0 for d in differences) / tasks
        return smallest_gain(changed, tasks, alpha, target_power)
    units = len(set(clusters)) if clusters else None
    spread = clustered_spread(differences, clusters)
    return smallest_mean_gain(spread, tasks, alpha, target_power, units)


def _buckets(
    card: Scorecard,
    was: Mapping[str, float],
    now: Mapping[str, float],
    test: TestName,
    cluster_of: ClusterOf,
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
                test, [now[t] - was[t] for t in tasks], clusters_in(tasks, cluster_of)
            ).worse,
        )
        for tag, tasks in sorted(members.items())
        if policy.tag_tasks <= len(tasks) < len(was)  # a tag of all tasks is the benchmark
    )


def signed(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def p_text(p_value: float) -> str:
    """Return a p-value as text: "p = 0.013", "p = 0.0004" or "p < 0.0001"."""
    if p_value < 0.0001:
        return "p < 0.0001"
    return f"p = {p_value:.3f}" if p_value >= 0.001 else f"p = {p_value:.4f}"


def count(number: float, noun: str = "task") -> str:
    """Return a number with its noun, rounded up: "1 task", "2 tasks", "2 entries"."""
    whole = ceil(number - 1e-9)
    if whole == 1:
        return f"1 {noun}"
    return f"{whole} {noun[:-1]}ies" if noun.endswith("y") else f"{whole} {noun}s"


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
