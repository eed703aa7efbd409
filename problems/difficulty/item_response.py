"""Problems and checkpoints on one scale: how hard each problem is and how able each checkpoint, from who solved what how often.

In: counts of right answers, a problem and a checkpoint each. Out: difficulties and abilities in logits with standard errors.

The model is Rasch's: a checkpoint of ability a solves a problem of difficulty d with probability 1 / (1 + exp(d - a)). Two weak normal priors
around 0 keep what all or nobody solved finite; the mean difficulty is 0, which fixes the scale. The posterior is concave, so Newton's steps lead to
its one maximum (joint MAP), the same on every machine. A discrimination of each problem (2PL) is left out: a handful of checkpoints does not tell it
from noise. Of the libraries, py-irt fits by stochastic variational inference on torch, and girth has had no release since 2021.
Source: Rasch 1960; Lalor et al. 2016, arXiv:1605.08889, for models in the place of persons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from problems.schema import write_table

DIFFICULTY_SD, ABILITY_SD = 2.0, 5.0  # of the priors, in logits
PLACES = 4  # digits kept: what differs behind them is how machines add
Floats = NDArray[np.float64]
Counts = Mapping[
    tuple[str, str], tuple[int, int]
]  # (checkpoint, problem) -> answers scored, answers right


@dataclass(frozen=True)
class Estimate:
    """A place on the scale, in logits, with its standard error, and the `passed` of `n` answers that it rests on."""

    name: str
    value: float
    error: float
    n: int
    passed: int


SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("value", pa.float64()),
        ("error", pa.float64()),
        ("n", pa.int64()),
        ("passed", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Scale:
    """Both sorted by value, names deciding between equals: abilities of checkpoints, difficulties of problems (mean 0)."""

    abilities: tuple[Estimate, ...] = ()
    difficulties: tuple[Estimate, ...] = ()


def fit(counts: Counts) -> Scale:
    """The scale of all counts. A pair without answers says nothing; where there are none at all the scale is empty.

    Raises ValueError naming a pair that has more right answers than answers.
    """
    told = {pair: count for pair, count in sorted(counts.items()) if count[0] > 0}
    for (checkpoint, problem), (answers, right) in told.items():
        if not 0 <= right <= answers:
            raise ValueError(f"{problem} by {checkpoint}: {right} right of {answers} answers")
    if not told:
        return Scale()
    checkpoints, problems = (sorted({pair[side] for pair in told}) for side in (0, 1))
    rows, columns = (
        {name: i for i, name in enumerate(problems)},
        {name: j for j, name in enumerate(checkpoints)},
    )
    n, passed = (
        np.zeros((len(problems), len(checkpoints))),
        np.zeros((len(problems), len(checkpoints))),
    )
    for (checkpoint, problem), count in told.items():
        n[rows[problem], columns[checkpoint]], passed[rows[problem], columns[checkpoint]] = count
    hard, able = _maximum(n, passed)
    errors = _errors(n, hard, able)
    middle = hard.mean()
    return Scale(
        _estimates(checkpoints, able - middle, errors[1], n.sum(0), passed.sum(0)),
        _estimates(problems, hard - middle, errors[0], n.sum(1), passed.sum(1)),
    )


def chance(ability: float, difficulty: float) -> float:
    """That the one solves the other."""
    return float(1 / (1 + np.exp(difficulty - ability)))


def _maximum(n: Floats, passed: Floats, most: int = 100) -> tuple[Floats, Floats]:
    """Difficulties and abilities at the maximum of the posterior: Newton's steps, halved where they would lead down."""
    hard, able = np.zeros(n.shape[0]), np.zeros(n.shape[1])
    best = _log_posterior(n, passed, hard, able)
    for _ in range(most):
        solved = _solved(hard, able)
        rest = passed - n * solved
        d_hard, d_able = -rest.sum(1) - hard / DIFFICULTY_SD**2, rest.sum(0) - able / ABILITY_SD**2
        own, cross, schur = _curvature(n, solved)
        step_able = np.linalg.solve(schur, d_able - cross.T @ (d_hard / own))
        step_hard = (d_hard - cross @ step_able) / own
        for share in 0.5 ** np.arange(30):
            tried = hard + share * step_hard, able + share * step_able
            if (value := _log_posterior(n, passed, *tried)) >= best:
                break
        hard, able, best = *tried, value
        if max(np.abs(step_hard).max(), np.abs(step_able).max()) < 1e-10:
            break
    return hard, able


def _solved(hard: Floats, able: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(hard[:, None] - able[None, :])))


def _log_posterior(n: Floats, passed: Floats, hard: Floats, able: Floats) -> float:
    gap = able[None, :] - hard[:, None]
    likely = passed * gap - n * np.logaddexp(0, gap)
    return float(
        likely.sum()
        - (hard**2).sum() / (2 * DIFFICULTY_SD**2)
        - (able**2).sum() / (2 * ABILITY_SD**2)
    )


def _curvature(n: Floats, solved: Floats) -> tuple[Floats, Floats, Floats]:
    """The negative Hessian is an arrow: `own` on the problems' diagonal, `cross` between them and the checkpoints. Last, the Schur complement."""
    weight = n * solved * (1 - solved)
    own, cross = weight.sum(1) + 1 / DIFFICULTY_SD**2, -weight
    return own, cross, np.diag(weight.sum(0) + 1 / ABILITY_SD**2) - cross.T @ (cross / own[:, None])


def _errors(n: Floats, hard: Floats, able: Floats) -> tuple[Floats, Floats]:
    """Standard errors of difficulties and abilities less the mean difficulty, from the inverse of the negative Hessian."""
    own, cross, schur = _curvature(n, _solved(hard, able))
    abilities, lean = np.linalg.inv(schur), cross / own[:, None]
    with_mean = (1 / own + lean @ abilities @ lean.sum(0)) / len(
        own
    )  # covariance of each difficulty with their mean
    of_mean = with_mean.mean()
    difficulties = 1 / own + np.einsum("ij,jk,ik->i", lean, abilities, lean)
    between = (
        -abilities @ lean.sum(0) / len(own)
    )  # covariance of each ability with the mean difficulty
    squares = difficulties - 2 * with_mean + of_mean, np.diag(abilities) - 2 * between + of_mean
    return np.sqrt(np.maximum(squares[0], 0)), np.sqrt(
        np.maximum(squares[1], 0)
    )  # a problem alone has no error: it is the mean


def _estimates(
    names: Sequence[str], values: Floats, errors: Floats, n: Floats, passed: Floats
) -> tuple[Estimate, ...]:
    made = [
        Estimate(
            name,
            round(float(value), PLACES) + 0.0,
            round(float(error), PLACES),
            int(answers),
            int(right),
        )
        for name, value, error, answers, right in zip(names, values, errors, n, passed, strict=True)
    ]
    return tuple(sorted(made, key=lambda estimate: (estimate.value, estimate.name)))


def write_scale(scale: Scale, folder: Path) -> None:
    """`abilities.parquet` and `difficulties.parquet`."""
    for name, estimates in (("abilities", scale.abilities), ("difficulties", scale.difficulties)):
        write_table(
            pa.Table.from_pylist([asdict(row) for row in estimates], schema=SCHEMA),
            folder / f"{name}.parquet",
        )


def read_scale(folder: Path) -> Scale:
    """Raises FileNotFoundError."""
    read = {
        name: pq.read_table(folder / f"{name}.parquet", schema=SCHEMA).to_pylist()
        for name in ("abilities", "difficulties")
    }
    return Scale(**{name: tuple(Estimate(**row) for row in rows) for name, rows in read.items()})
