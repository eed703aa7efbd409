"""Put problems and checkpoints on one scale: difficulties and abilities.

In: per problem and checkpoint, how many completions passed. Out: difficulties and abilities in
logits, with standard errors.

This is the Rasch model: a checkpoint of ability a solves a problem of difficulty d with probability
1 / (1 + exp(d - a)). Two weak normal priors around 0 keep the estimates finite where all or no
completions pass. The mean difficulty is 0, which fixes the scale. The posterior is concave, so
Newton's method finds its only maximum (joint MAP), the same on every machine. A discrimination per
problem (2PL) is left out, because a handful of checkpoints cannot distinguish it from noise. Of the
libraries, py-irt fits by stochastic variational inference on torch, and girth has had no release
since 2021.

Sources: Rasch 1960; Lalor et al. 2016, arXiv:1605.08889, for models instead of persons.
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

DIFFICULTY_SD, ABILITY_SD = 2.0, 5.0  # standard deviations of the priors, in logits
PLACES = 4  # decimals kept: further ones differ with a machine's order of summation
Floats = NDArray[np.float64]
# (checkpoint, problem) -> (scored completions, passed completions)
Counts = Mapping[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True)
class Estimate:
    """A position on the scale, in logits, with its standard error.

    It rests on `n` completions, `passed` of which passed.
    """

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
    """Abilities of checkpoints and difficulties of problems, each with its error."""

    abilities: tuple[Estimate, ...] = ()
    difficulties: tuple[Estimate, ...] = ()


def fit(counts: Counts) -> Scale:
    """Fit the scale to all counts. Pairs without completions are ignored.

    Without any completions the scale is empty. Raises ValueError naming a pair with more passed
    completions than completions.
    """
    observed = {pair: count for pair, count in sorted(counts.items()) if count[0] > 0}
    for (checkpoint, problem), (samples, right) in observed.items():
        if not 0 <= right <= samples:
            raise ValueError(
                f"problem {problem}, checkpoint {checkpoint}: {right} correct of {samples} "
                "completions"
            )
    if not observed:
        return Scale()
    checkpoints, problems = (sorted({pair[side] for pair in observed}) for side in (0, 1))
    rows, columns = (
        {name: i for i, name in enumerate(problems)},
        {name: j for j, name in enumerate(checkpoints)},
    )
    n, passed = (
        np.zeros((len(problems), len(checkpoints))),
        np.zeros((len(problems), len(checkpoints))),
    )
    for (checkpoint, problem), count in observed.items():
        n[rows[problem], columns[checkpoint]], passed[rows[problem], columns[checkpoint]] = count
    hard, able = _maximum(n, passed)
    errors = _errors(n, hard, able)
    middle = hard.mean()
    return Scale(
        _estimates(checkpoints, able - middle, errors[1], n.sum(0), passed.sum(0)),
        _estimates(problems, hard - middle, errors[0], n.sum(1), passed.sum(1)),
    )


def chance(ability: float, difficulty: float) -> float:
    """Return the probability that a checkpoint solves a problem."""
    return float(1 / (1 + np.exp(difficulty - ability)))


def _maximum(n: Floats, passed: Floats, most: int = 100) -> tuple[Floats, Floats]:
    """Return difficulties and abilities at the maximum of the posterior.

    Uses Newton steps, halved where they would decrease the posterior.
    """
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
            candidate = hard + share * step_hard, able + share * step_able
            if (value := _log_posterior(n, passed, *candidate)) >= best:
                break
        hard, able, best = *candidate, value
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
    """Return the parts of the negative Hessian, which has an arrow shape, and its Schur complement.

    `own` is the problems' diagonal, `cross` is between problems and checkpoints.
    """
    weight = n * solved * (1 - solved)
    own, cross = weight.sum(1) + 1 / DIFFICULTY_SD**2, -weight
    return own, cross, np.diag(weight.sum(0) + 1 / ABILITY_SD**2) - cross.T @ (cross / own[:, None])


def _errors(n: Floats, hard: Floats, able: Floats) -> tuple[Floats, Floats]:
    """Return standard errors of difficulties and abilities relative to the mean difficulty.

    They come from the inverse of the negative Hessian.
    """
    own, cross, schur = _curvature(n, _solved(hard, able))
    abilities, lean = np.linalg.inv(schur), cross / own[:, None]
    # covariance of each difficulty with the mean difficulty
    with_mean = (1 / own + lean @ abilities @ lean.sum(0)) / len(own)
    of_mean = with_mean.mean()
    difficulties = 1 / own + np.einsum("ij,jk,ik->i", lean, abilities, lean)
    # covariance of each ability with the mean difficulty
    between = -abilities @ lean.sum(0) / len(own)
    squares = difficulties - 2 * with_mean + of_mean, np.diag(abilities) - 2 * between + of_mean
    # A single problem has no error: it is the mean.
    return np.sqrt(np.maximum(squares[0], 0)), np.sqrt(np.maximum(squares[1], 0))


def _estimates(
    names: Sequence[str], values: Floats, errors: Floats, n: Floats, passed: Floats
) -> tuple[Estimate, ...]:
    estimates = [
        Estimate(
            name,
            round(float(value), PLACES) + 0.0,
            round(float(error), PLACES),
            int(samples),
            int(right),
        )
        for name, value, error, samples, right in zip(names, values, errors, n, passed, strict=True)
    ]
    return tuple(sorted(estimates, key=lambda estimate: (estimate.value, estimate.name)))


def write_scale(scale: Scale, folder: Path) -> None:
    """Write `abilities.parquet` and `difficulties.parquet`."""
    for name, estimates in (("abilities", scale.abilities), ("difficulties", scale.difficulties)):
        write_table(
            pa.Table.from_pylist([asdict(row) for row in estimates], schema=SCHEMA),
            folder / f"{name}.parquet",
        )


def read_scale(folder: Path) -> Scale:
    """Read what `write_scale` wrote. Raises FileNotFoundError."""
    read = {
        name: pq.read_table(folder / f"{name}.parquet", schema=SCHEMA).to_pylist()
        for name in ("abilities", "difficulties")
    }
    return Scale(**{name: tuple(Estimate(**row) for row in rows) for name, rows in read.items()})
