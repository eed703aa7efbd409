"""A score with its interval: pass@k over the tasks of a scorecard, or over clusters of them.

In: a scorecard, or the completions of each task that pass. Out: a `Rate`. Unjudged completions are
refused: they have no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from evaluation.scorecard import Scorecard
from evaluation.statistics.bounded_mean import Clusters, mean_interval
from evaluation.statistics.hypothesis_tests import share_interval
from evaluation.statistics.pass_at_k import curve, estimates

# task -> (passing completions, or the sum of their part marks; completions)
Counts = dict[str, tuple[float, int]]
ClusterOf = Mapping[str, str]  # task -> its cluster; empty: tasks are independent


class Incomparable(ValueError):
    """Scorecards that cannot be compared: they measure different things, or too little. The message
    names the difference and the fix.
    """


class Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rate(Plain):
    """pass@k with its interval (95 %). `solved`: a count of tasks; None for an estimate."""

    solved: int | None
    tasks: int
    share: float
    low: float
    high: float
    clusters: int | None = None  # clusters that the interval is over; None: it is over tasks

    @classmethod
    def of(cls, card: Scorecard, k: int = 1) -> Rate:
        return cls.over(counts_of(card), k, clusters_of(card))

    @classmethod
    def over(cls, counts: Counts, k: int = 1, cluster_of: ClusterOf | None = None) -> Rate:
        """Return pass@k. Raises ValueError for a task with fewer than k completions."""
        return cls.at(counts, [k], cluster_of)[k]

    @classmethod
    def at(
        cls, counts: Counts, ks: Sequence[int], cluster_of: ClusterOf | None = None
    ) -> dict[int, Rate]:
        """Return pass@k for several k at once. One completion a task: Wilson's interval, wider at
        the edges; several, part marks or related tasks: Gaffke's.
        """
        clusters = clusters_in(counts, cluster_of)
        single = is_greedy(counts) and list(ks) == [1]
        solved = sum(int(c) for c, _ in counts.values()) if single else None
        if solved is not None and clusters is None:
            return {1: cls.counted(solved, len(counts))}
        common = {
            "solved": solved,
            "tasks": len(counts),
            "clusters": len(set(clusters)) if clusters else None,
        }
        if has_part_marks(counts):
            values = list(values_of(counts, max(ks)).values())
            low, high = mean_interval(values, clusters=clusters)
            share = sum(values) / len(values)
            return {1: cls.model_validate(common | {"share": share, "low": low, "high": high})}
        return {
            at.k: cls.model_validate(common | {"share": at.share, "low": at.low, "high": at.high})
            for at in curve(*_columns(counts), ks, clusters)
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
        counts[sample.task_id] = solved + sample.credit(tests), samples + 1
    if not counts:
        raise Incomparable(
            f"{card.benchmark}: {card.checkpoint} has no completions: evaluate again"
        )
    return counts


def clusters_of(*cards: Scorecard) -> dict[str, str]:
    """Return the cluster of each task that has one in any of the scorecards."""
    return {s.task_id: s.cluster for card in cards for s in card.samples if s.cluster}


def clusters_in(tasks: Iterable[str], cluster_of: ClusterOf | None) -> Clusters:
    """Return the cluster of each task; one without is a cluster of its own. None if no two tasks
    share one: they are independent then.
    """
    clusters = [(cluster_of or {}).get(task) or f"task {task}" for task in tasks]
    return clusters if len(set(clusters)) < len(clusters) else None


def is_greedy(counts: Counts, k: int = 1) -> bool:
    """Return whether each task has one completion, right or wrong, so that exact tests apply."""
    return k == 1 and all(n == 1 and c in (0, 1) for c, n in counts.values())


def has_part_marks(counts: Counts) -> bool:
    return any(c != int(c) for c, _ in counts.values())


def values_of(counts: Counts, k: int = 1) -> dict[str, float]:
    """Return pass@k of each task. Raises Incomparable for a task with fewer than k completions."""
    if short := next((task for task, (_, n) in counts.items() if n < k), None):
        raise Incomparable(
            f"pass@{k} needs {k} completions per task, {short} has {counts[short][1]}: generate "
            "more or lower k"
        )
    if not has_part_marks(counts):
        return dict(zip(counts, estimates(*_columns(counts), k), strict=True))
    if k > 1:
        raise Incomparable(f"pass@{k} of part marks does not exist: compare them with --k 1")
    return {task: c / n for task, (c, n) in counts.items()}


def _columns(counts: Counts) -> tuple[list[int], list[int]]:
    return [int(c) for c, _ in counts.values()], [n for _, n in counts.values()]


def points(share: float) -> str:
    return f"{100 * share:.1f}"
