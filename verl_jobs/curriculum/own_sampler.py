"""A user's sampler in the place of our curriculum's table (verl_jobs/curriculum/curriculum.py): which rows the next step draws, by what was observed.

A sampler is made by `Sampler(expected, steps=..., seed=...)`, a row of `problems.difficulty.pass_rate_prior.Expected` a problem in the dataset's order, and has
    draw(count) -> rows                                         as many numbers from 0 to len(expected) - 1
    observe([(problem_id, solved), ...])                        a step's verdicts, one an answer
    state_dict() -> anything that pickles, load_state_dict(it)  so that a resumed run draws as if nothing had happened
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from problems.difficulty.pass_rate_prior import Expected
from verl_jobs.config.references import PluginError, load
from verl_jobs.curriculum.draws import Draw


class Sampler(Protocol):
    def draw(self, count: int) -> Sequence[int]: ...

    def observe(self, outcomes: Sequence[tuple[str, bool]]) -> None: ...

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any) -> None: ...


class OwnTable:
    """What the dataset and the replay buffer ask of a curriculum's table, answered by a user's sampler."""

    def __init__(
        self, reference: str, expected: Sequence[Expected], *, steps: int, seed: int
    ) -> None:
        """Raises PluginError."""
        self.reference, self.ids, self.step = reference, [row.problem_id for row in expected], 0
        self.sampler: Sampler = load(reference)(list(expected), steps=steps, seed=seed)
        self.drawn_at = np.full(len(self.ids), -1, np.int64)

    def draw(self, count: int) -> list[int]:
        """Raises PluginError for another number of rows, or rows that are not there."""
        rows = [int(row) for row in self.sampler.draw(count)]
        if len(rows) != count or not all(0 <= row < len(self.ids) for row in rows):
            raise PluginError(
                f"{self.reference}: draw({count}) gave {rows[:8]}: give {count} rows, each from 0 to {len(self.ids) - 1}"
            )
        self.drawn_at[rows] = self.step
        return rows

    def observe(self, outcomes: Iterable[tuple[str, bool]]) -> list[Draw]:
        """Hands a step's verdicts on; what they came to, by problem."""
        told = list(outcomes)
        self.sampler.observe(told)
        self.step += 1
        answered, passed = (
            Counter(problem_id for problem_id, _ in told),
            Counter(problem_id for problem_id, solved in told if solved),
        )
        return [
            Draw(problem_id, passed[problem_id], n) for problem_id, n in sorted(answered.items())
        ]

    def state_dict(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "step": self.step,
            "drawn_at": self.drawn_at.copy(),
            "own": self.sampler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError when the state is of other problems."""
        if state["ids"] != self.ids:
            raise ValueError(
                f"the checkpoint's sampler is of {len(state['ids'])} other problems than these {len(self.ids)}: start a new run"
            )
        self.step, self.drawn_at = state["step"], state["drawn_at"].copy()
        self.sampler.load_state_dict(state["own"])
