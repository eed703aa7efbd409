"""A user's sampler in place of the curriculum's table (verl_jobs/curriculum/curriculum.py).

It selects the next step's rows from observed results. A sampler is created by `Sampler(expected,
steps=..., seed=...)`, with one `problems.difficulty.pass_rate_prior.ExpectedPassRate` per problem
in the dataset's order. Its methods:

    draw(count) -> rows                      `count` numbers from 0 to len(expected) - 1
    observe([(problem_id, solved), ...])     a step's verdicts, one per completion
    state_dict() -> any picklable object, load_state_dict(it)
                                             so that a resumed run selects the same rows
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from problems.difficulty.pass_rate_prior import ExpectedPassRate
from verl_jobs.config.references import PluginError, load
from verl_jobs.curriculum.draws import Draw


class Sampler(Protocol):
    def draw(self, count: int) -> Sequence[int]: ...

    def observe(self, outcomes: Sequence[tuple[str, bool]]) -> None: ...

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any) -> None: ...


class OwnTable:
    """A user's sampler with the interface of a curriculum's table.

    Used by the dataset and the replay buffer.
    """

    def __init__(
        self, reference: str, expected: Sequence[ExpectedPassRate], *, steps: int, seed: int
    ) -> None:
        """Raises PluginError."""
        self.reference, self.ids, self.step = reference, [row.problem_id for row in expected], 0
        self.sampler: Sampler = load(reference)(list(expected), steps=steps, seed=seed)
        self.drawn_at = np.full(len(self.ids), -1, np.int64)

    def draw(self, count: int) -> list[int]:
        """Return `count` rows. Raises PluginError for another number, or for rows out of range."""
        rows = [int(row) for row in self.sampler.draw(count)]
        if len(rows) != count or not all(0 <= row < len(self.ids) for row in rows):
            raise PluginError(
                f"{self.reference}: draw({count}) returned {rows[:8]}: return {count} rows, each "
                f"from 0 to {len(self.ids) - 1}"
            )
        self.drawn_at[rows] = self.step
        return rows

    def observe(self, outcomes: Iterable[tuple[str, bool]]) -> list[Draw]:
        """Pass a step's verdicts to the sampler; return the results per problem."""
        results = list(outcomes)
        self.sampler.observe(results)
        self.step += 1
        counts, passed = (
            Counter(problem_id for problem_id, _ in results),
            Counter(problem_id for problem_id, solved in results if solved),
        )
        return [Draw(problem_id, passed[problem_id], n) for problem_id, n in sorted(counts.items())]

    def state_dict(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "step": self.step,
            "drawn_at": self.drawn_at.copy(),
            "own": self.sampler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError if the state belongs to other problems."""
        if state["ids"] != self.ids:
            raise ValueError(
                f"the checkpoint's sampler has {len(state['ids'])} problems that differ from these "
                f"{len(self.ids)}: start a new run"
            )
        self.step, self.drawn_at = state["step"], state["drawn_at"].copy()
        self.sampler.load_state_dict(state["own"])
