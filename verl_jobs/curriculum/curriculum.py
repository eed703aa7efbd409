"""Curriculum: each problem's probability of selection, from the policy's current pass rate on it.

In: a prior for each problem (problems/difficulty/pass_rate_prior.py), then each step's verdicts.
Out: rows to train on. Uses only numpy, not verl: `verl_jobs/curriculum/curriculum_dataset.py`
selects for verl's dataloader, and `verl_jobs/trainer/replay_buffer.py` reports the verdicts. Both
run in the trainer's process and share the table set by `use`.

A problem's pass rate is a Beta posterior. Its evidence halves every `half_life` steps, because the
policy has changed since. Schedules that aim at a rate use a sample of the posterior, so that
uncertain problems are explored (Qu et al. 2025, MoPPS, arXiv:2507.04632).

    window      near the target: a group's gradient grows with the variance p(1 - p) of its
                verdicts (Bae et al. 2025, arXiv:2504.03380)
    mixed       half from the window, half from all (Zaremba & Sutskever 2014, arXiv:1410.4615)
    competence  the easiest first, then gradually more (Platanios et al. 2019, arXiv:1903.09848)
    reverse     the hardest first (Hacohen & Weinshall 2019, arXiv:1904.03626, the
                anti-curriculum)
    weighted    by the weights only
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from problems.difficulty.pass_rate_prior import ExpectedPassRate
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.curriculum.draws import Draw
from verl_jobs.curriculum.own_sampler import OwnTable

Floats = NDArray[np.float64]

PRIOR = 2.0  # weight of the prior from a problem's tags, in completions
START = 0.1  # share of the problems that competence and reverse start with
FULL_AT = 0.5  # share of the training after which they select from all problems
UNIFORM_SHARE = 0.5  # share of `mixed` that is selected from all problems
FLOOR = 1e-6  # probability mass spread over all problems, so that none has probability 0
SAMPLED = ("window", "mixed")  # schedules that aim at a pass rate


def competence(progress: float) -> float:
    """Return the share of the problems that may be selected at this progress, `START` to 1.

    The square-root rule of Platanios et al.
    """
    return min(1.0, float(np.sqrt(progress / FULL_AT * (1 - START**2) + START**2)))


@dataclass(frozen=True)
class ProblemPool:
    """Candidate problems.

    `rates`: (N) pass rates in [0, 1]; `weights`: (N) positive, relative frequency of a problem if
    nothing else matters.
    """

    rates: Floats
    weights: Floats


def probabilities(plan: Curriculum, pool: ProblemPool, progress: float, count: int = 1) -> Floats:
    """Return each problem's probability to be selected first, (N); sums to 1.

    At least `count` problems have a substantial probability. progress: share of the training that
    is over, in [0, 1].
    """
    allowed = max(count, int(np.ceil(competence(progress) * len(pool.rates))))
    match plan.schedule:
        case "window":
            values = _window(plan, pool)
        case "mixed":
            values = UNIFORM_SHARE * _normalized(pool.weights) + (1 - UNIFORM_SHARE) * _normalized(
                _window(plan, pool)
            )
        case "competence":
            values = np.where(_ranks(-pool.rates) < allowed, pool.weights, 0.0)
        case "reverse":
            values = np.where(_ranks(pool.rates) < allowed, pool.weights, 0.0)
        case _:
            values = pool.weights
    return (1 - FLOOR) * _normalized(values) + FLOOR / len(values)


def _window(plan: Curriculum, pool: ProblemPool) -> Floats:
    return pool.weights * np.exp(-0.5 * ((pool.rates - plan.target) / plan.width) ** 2)


def _normalized(values: Floats) -> Floats:
    total = values.sum()
    return values / total if total > 0 else np.full(len(values), 1 / len(values))


def _ranks(values: Floats) -> NDArray[np.int64]:
    """Return the rank of each value, the earlier of equal values first."""
    place = np.empty(len(values), np.int64)
    place[np.argsort(values, kind="stable")] = np.arange(len(values))
    return place


class Table:
    """Pass-rate estimates of all problems, and the selection from them.

    Equal states select equally, and the state is part of checkpoints.
    """

    def __init__(
        self, plan: Curriculum, expected: Sequence[ExpectedPassRate], *, steps: int, seed: int
    ) -> None:
        """Create the table.

        expected: one row per problem with unique ids, in the dataset's order. steps: of the whole
        training.
        """
        self.plan, self.steps, self.seed = plan, steps, seed
        self.ids = [row.problem_id for row in expected]
        self.at = {problem_id: place for place, problem_id in enumerate(self.ids)}
        if len(self.at) < len(self.ids):
            [(duplicate, _)] = Counter(self.ids).most_common(1)
            raise ValueError(
                f"{duplicate} has more than one training row: a curriculum needs one row a problem"
            )
        self.prior, self.weights = (
            np.array([row.rate for row in expected]),
            np.array([row.weight for row in expected]),
        )
        self.passed = np.array([row.passed for row in expected], np.float64)
        self.failed = np.array([row.n - row.passed for row in expected], np.float64)
        self.shown_at = np.zeros(len(expected), np.int64)  # the step of the newest evidence
        self.drawn_at = np.full(len(expected), -1, np.int64)
        self.step = self.draws = 0

    def posterior(self) -> tuple[Floats, Floats]:
        """Return the two parameters of each problem's Beta distribution, (N) each."""
        decay = 0.5 ** ((self.step - self.shown_at) / self.plan.half_life)
        return PRIOR * self.prior + decay * self.passed, PRIOR * (
            1 - self.prior
        ) + decay * self.failed

    def rates(self) -> Floats:
        """Return the expected pass rates of the current policy, (N)."""
        passes, fails = self.posterior()
        return passes / (passes + fails)

    def draw(self, count: int) -> list[int]:
        """Return `count` different rows.

        Rows already selected in this step only if there are no others. Samples without replacement
        by exponential clocks: the first to ring are selected (Efraimidis & Spirakis 2006).
        """
        rng = np.random.default_rng([self.seed, self.draws])
        free = np.flatnonzero(self.drawn_at < self.step)
        if len(free) < count:
            free = np.arange(len(self.ids))
        rates = rng.beta(*self.posterior()) if self.plan.schedule in SAMPLED else self.rates()
        chance = probabilities(
            self.plan, ProblemPool(rates[free], self.weights[free]), self.step / self.steps, count
        )
        rows = free[np.argsort(rng.standard_exponential(len(free)) / chance, kind="stable")[:count]]
        self.drawn_at[rows] = self.step
        self.draws += 1
        return [int(row) for row in rows]

    def observe(self, outcomes: Iterable[tuple[str, bool]]) -> list[Draw]:
        """Update the estimates with a step's verdicts.

        outcomes: (problem, whether the completion passed) each. Returns the results per problem
        with the previously expected pass rate, sorted by id. Raises ValueError for a problem
        without a row.
        """
        rates, passed, counts = self.rates(), Counter[str](), Counter[str]()
        for problem_id, solved in outcomes:
            passed[problem_id] += solved
            counts[problem_id] += 1
        if unknown := next(
            (problem_id for problem_id in counts if problem_id not in self.at), None
        ):
            raise ValueError(
                f"{unknown} has no training row: your dataset class must not change "
                "extra_info.problem_id"
            )
        draws = []
        for problem_id in sorted(counts):
            row, passes, n = self.at[problem_id], passed[problem_id], counts[problem_id]
            decay = 0.5 ** ((self.step - self.shown_at[row]) / self.plan.half_life)
            self.passed[row], self.failed[row] = (
                decay * self.passed[row] + passes,
                decay * self.failed[row] + n - passes,
            )
            self.shown_at[row] = self.step
            draws.append(Draw(problem_id, passes, n, float(rates[row])))
        self.step += 1
        return draws

    def state_dict(self) -> dict[str, Any]:
        arrays = {
            name: getattr(self, name).copy()
            for name in ("passed", "failed", "shown_at", "drawn_at")
        }
        return {"ids": list(self.ids), "step": self.step, "draws": self.draws} | arrays

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError if the state belongs to other problems."""
        if state["ids"] != self.ids:
            raise ValueError(
                f"the checkpoint's curriculum has {len(state['ids'])} problems that differ from "
                f"these {len(self.ids)}: start a new run"
            )
        self.step, self.draws = state["step"], state["draws"]
        for name in ("passed", "failed", "shown_at", "drawn_at"):
            setattr(self, name, state[name].copy())


def figures(draws: Sequence[Draw], table: Table | OwnTable) -> dict[str, float]:
    """Return a step's curriculum metrics for verl.

    They are the observed and the expected pass rate, the mean error per problem, the share of
    problems with mixed verdicts (only these give a group-based algorithm a gradient), and the share
    of all problems selected so far.
    """
    if not draws:
        return {}
    # a user's sampler has no expectation
    expected = [(draw.expected, draw.pass_rate) for draw in draws if draw.expected is not None]
    values = {
        "pass_rate": np.mean([draw.pass_rate for draw in draws]),
        "informative": np.mean([0 < draw.passed < draw.n for draw in draws]),
        "drawn_so_far": np.mean(table.drawn_at >= 0),
    }
    if expected:
        values["expected_pass_rate"] = np.mean([rate for rate, _ in expected])
        values["error"] = np.mean([abs(rate - observed) for rate, observed in expected])
    return {f"curriculum/{name}": float(value) for name, value in values.items()}


_present: Table | OwnTable | None = None


def set_table(table: Table | OwnTable) -> None:
    """Set the table of this process."""
    global _present
    _present = table


def current_table() -> Table | OwnTable | None:
    """Return the table of this process; None if problems are selected uniformly."""
    return _present
