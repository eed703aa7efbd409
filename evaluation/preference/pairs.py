"""Pairs of completions for people to choose between, in an order and on sides that a seed decides.

In: contestants and tasks. Out: pairs, each once; for each judge an order and a side. The sides
follow from seed, pair and judge: they are the same after a restart, and no judge sees one
contestant on one side only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

from pydantic import BaseModel, ConfigDict

from artifacts.hashing import hash_data
from evaluation.preference.contestants import Contestant
from problems.columns import ProblemError

Chosen = Literal["left", "right", "tie"]


class CompletionPair(BaseModel):
    """Two different completions of one task, with their contestants."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str  # made from the texts; it does not reveal the contestants
    problem_id: str
    statement: str
    first: str
    second: str
    first_of: str
    second_of: str

    def sides(self, seed: int, judge: str) -> tuple[str, str]:
        """Return (left, right) as shown to this judge."""
        return (
            (self.first, self.second)
            if _draw(seed, judge, self.id, "side")[0] in "01234567"
            else (self.second, self.first)
        )

    def winner(self, left: str, chosen: Chosen) -> str:
        """Return the chosen contestant if `left` was shown on the left; "tie" for neither."""
        if chosen == "tie":
            return "tie"
        return self.first_of if (left == self.first) == (chosen == "left") else self.second_of


def make_pairs(
    contestants: Sequence[Contestant], statements: Mapping[str, str], seed: int, most: int = 0
) -> tuple[list[CompletionPair], int]:
    """Return the pairs, and the number of those left out because both texts are equal.

    Every two contestants meet on every task that both have, sample by sample; two texts meet once
    per task. most: maximum number of pairs, drawn by the seed; 0: all. Raises ProblemError if
    names repeat, no task is shared, or a task's statement is unknown.
    """
    if len({c.name for c in contestants}) < len(contestants):
        raise ProblemError(
            f"two of {', '.join(c.name for c in contestants)} have the same name",
            "rename a file: each contestant needs a name of its own",
        )
    pairs_by_id: dict[str, CompletionPair] = {}
    same = 0
    for one, other in combinations(contestants, 2):
        shared = sorted(one.completions.keys() & other.completions.keys())
        if not shared:
            raise ProblemError(
                f"{one.name} and {other.name} have no task in common",
                "give completions of the same tasks",
            )
        for task in shared:
            for a, b in zip(one.completions[task], other.completions[task], strict=False):
                if a.strip() == b.strip():
                    same += 1
                    continue
                if task not in statements:
                    raise ProblemError(
                        f"the statement of {task} is unknown",
                        "give the statements with --tasks, or rows with a `prompt`",
                    )
                id = hash_data([task, sorted((a, b))])[:16]
                pairs_by_id.setdefault(
                    id,
                    CompletionPair(
                        id=id,
                        problem_id=task,
                        statement=statements[task],
                        first=a,
                        second=b,
                        first_of=one.name,
                        second_of=other.name,
                    ),
                )
    ordered = sorted(pairs_by_id.values(), key=lambda pair: _draw(seed, "", pair.id, "drawn"))
    return (ordered[:most] if most else ordered), same


def order(pairs: Sequence[CompletionPair], seed: int, judge: str) -> list[CompletionPair]:
    """Return all pairs in this judge's own order, so that fatigue affects other pairs for each
    judge.
    """
    return sorted(pairs, key=lambda pair: _draw(seed, judge, pair.id, "order"))


def _draw(seed: int, judge: str, pair: str, purpose: str) -> str:
    return hash_data([seed, judge, pair, purpose])
