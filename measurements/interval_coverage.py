"""Whether 95 % intervals of pass@k, of differences and of related tasks cover the truth, and
whether the paired test keeps its level; by simulation.

    python -m measurements.interval_coverage FOLDER [--samples 500]

Tasks are drawn from a population; a task's completions are right with its own chance. Distributions
of the chances: the same for all; 0 or 1; beta with a + b from 0.3 (U-shaped) to 20; a rest with
half of the mean and a few tasks that are sure, and its mirror image. Each cell is a line of
FOLDER/rows.jsonl; a second start continues. Seeds are fixed. Prints Markdown tables: the worst cell
of each group, simulated again with four times the samples, with the standard error in brackets.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from evaluation.statistics.bounded_mean import mean_interval
from evaluation.statistics.hypothesis_tests import Floats, clopper_pearson, mcnemar
from evaluation.statistics.paired import clustered_spread, mean_power
from evaluation.statistics.pass_at_k import estimates
from evaluation.statistics.sign_flips import sign_flip_test

FEW = 164  # tasks; of more the bootstrap is not simulated
SHARES = (0.02, 0.1, 0.5, 0.9, 0.98)  # true pass@k
TASKS = (20, 164, 1000)
COMPLETIONS = ((1, 1), (5, 1), (20, 1), (5, 5), (20, 5), (10, 10), (20, 10))
BETAS = (0.3, 1.0, 4.0, 20.0)
DISTRIBUTIONS = ("equal", "0 or 1", "few easy", "few hard", *(f"beta {each:g}" for each in BETAS))
Row = dict[str, Any]
Simulate = Callable[[Generator, int, int], Row]  # generator, samples, draws of an interval
Chances = Callable[[Generator, int], Floats]


def chances(name: str, share: float, k: int) -> Chances:
    """Return a function that draws tasks' chances; the mean pass@k of the population is `share`."""
    if name == "0 or 1":
        return lambda rng, tasks: (rng.random(tasks) < share).astype(float)
    if name in ("few easy", "few hard"):
        part = share if name == "few easy" else 1 - share
        few = part / 2 / (1 - part / 2)
        sure, rest = (
            (1.0, _at_k(part / 2, k)) if name == "few easy" else (0.0, _at_k(1 - part / 2, k))
        )
        return lambda rng, tasks: np.where(rng.random(tasks) < few, sure, rest)
    if name == "equal":
        return lambda rng, tasks: np.full(tasks, _at_k(share, k))
    together = float(name.split()[1])
    low, high = 0.0, 1.0
    for _ in range(60):
        mean = (low + high) / 2
        all_wrong = np.prod([((1 - mean) * together + i) / (together + i) for i in range(k)])
        low, high = (mean, high) if 1 - all_wrong < share else (low, mean)
    return lambda rng, tasks: rng.beta(low * together, (1 - low) * together, tasks)


def _at_k(share: float, k: int) -> float:
    """Return the chance of a completion at which pass@k is this share."""
    return float(1 - (1 - share) ** (1 / k))


def values(rng: Generator, chance: Floats, n: int, k: int) -> Floats:
    table = np.array(estimates(range(n + 1), [n] * (n + 1), k))
    drawn: Floats = table[rng.binomial(n, chance)]
    return drawn


def share_cells() -> Iterator[tuple[str, Simulate]]:
    """One cell for each number of tasks, completions and k, distribution and true share."""
    for (n, k), tasks, share, name in product(COMPLETIONS, TASKS, SHARES, DISTRIBUTIONS):
        if n > 1 or name == "equal":  # with one completion all are the same
            yield f"share {n} {k} {tasks} {share} {name}", partial(_share, n, k, tasks, share, name)


def _share(
    n: int, k: int, tasks: int, share: float, name: str, rng: Generator, samples: int, draws: int
) -> Row:
    draw, intervals, plain = chances(name, share, k), [], []
    for _ in range(samples):
        seen = values(rng, draw(rng, tasks), n, k)
        intervals.append(mean_interval(seen, draws=draws))
        if tasks <= FEW:
            means = seen[rng.integers(tasks, size=(200, tasks))].mean(1)
            plain.append(np.quantile(means, [0.025, 0.975]))
    row: Row = {"n": n, "k": k, "tasks": tasks, "share": share, "name": name}
    row |= {"covers": _covers(intervals, share), "width": _width(intervals)}
    return row | ({"bootstrap": _covers(plain, share)} if plain else {})


def _covers(bounds: Any, truth: float) -> float:
    table = np.asarray(bounds)
    return float(((table[:, 0] <= truth + 1e-12) & (truth <= table[:, 1] + 1e-12)).mean())


def _width(bounds: Any) -> float:
    table = np.asarray(bounds)
    return float((table[:, 1] - table[:, 0]).mean())


TRUTHS = ("equally good", "+5 points", "better and worse")


def difference_cells() -> Iterator[tuple[str, Simulate]]:
    """Two models on the same tasks. "better and worse": 5 % of the tasks are lost altogether, and
    the others gain as much.
    """
    for (n, k), tasks, share, truth in product(
        ((10, 1), (20, 1), (10, 5), (20, 10)), (20, 164, 400), SHARES, TRUTHS
    ):
        key = f"difference {n} {k} {tasks} {share} {truth}"
        yield key, partial(_difference, n, k, tasks, share, truth)


def _difference(
    n: int, k: int, tasks: int, share: float, truth: str, rng: Generator, samples: int, draws: int
) -> Row:
    draw = chances("beta 1", share, k)
    population = draw(np.random.default_rng(0), 200_000)
    after = _changed(population, truth, k)
    gain = float(np.mean(_pass(after, k) - _pass(population, k)))
    bounds, better = [], []
    for _ in range(samples):
        at = rng.integers(len(population), size=tasks)
        seen = values(rng, after[at], n, k) - values(rng, population[at], n, k)
        bounds.append(mean_interval(seen, -1.0, 1.0, draws=draws))
        better.append(sign_flip_test(seen).better)
    row: Row = {"n": n, "k": k, "tasks": tasks, "share": share, "name": truth}
    shown = {
        f"shown at {level}": float(np.mean(np.array(better) <= level)) for level in (0.01, 0.05)
    }
    return row | {"covers": _covers(bounds, gain), "width": _width(bounds)} | shown


def _pass(chance: Floats, k: int) -> Floats:
    reached: Floats = 1 - (1 - chance) ** k
    return reached


def _changed(chance: Floats, truth: str, k: int) -> Floats:
    if truth == "equally good":
        return chance
    if truth == "+5 points":
        return np.clip(chance + 0.05, 0, 1)
    lost = np.arange(len(chance)) % 20 == 0
    low, high = 0.0, 1.0  # by bisection the others' gain that pays for the lost tasks
    for _ in range(40):
        step = (low + high) / 2
        after = np.where(lost, 0.0, chance + step * (1 - chance))
        short = float(np.mean(_pass(after, k) - _pass(chance, k))) < 0
        low, high = (step, high) if short else (low, step)
    return np.where(lost, 0.0, chance + low * (1 - chance))


ALIKE = (0.0, 0.05, 0.2, 0.6, 1.0)  # correlation of two tasks of a cluster
SIZES = {
    "20 of 20": [20] * 20,
    "20 of 1 to 58": [1 + 3 * i for i in range(20)],
    "100 of 4": [4] * 100,
}


def cluster_cells() -> Iterator[tuple[str, Simulate]]:
    """One completion a task. Two models; each has its own chance in each cluster."""
    for size, alike, share in product(SIZES, ALIKE, SHARES):
        yield f"cluster {size} {alike} {share}", partial(_cluster, size, alike, share)


def _cluster(
    size: str, alike: float, share: float, rng: Generator, samples: int, draws: int
) -> Row:
    sizes = np.array(SIZES[size])
    clusters = np.repeat(np.arange(len(sizes)), sizes).astype(str).tolist()
    gain = 0.1 if share <= 0.5 else 0.0
    bounds, differences = [], []
    single, whole, power, said = [], [], [], []
    for _ in range(samples):
        old, new, stronger = (
            _solved(rng, sizes, each, alike) for each in (share, share, share + gain)
        )
        bounds.append(mean_interval(old, clusters=clusters, draws=draws))
        differences.append(mean_interval(new - old, -1.0, 1.0, clusters, draws=draws))
        single.append(mcnemar(int((new > old).sum()), int((new < old).sum())).better)
        whole.append(sign_flip_test(new - old, clusters).better)
        if gain:
            seen = stronger - old
            won, lost = int((seen > 0).sum()), int((seen < 0).sum())
            power.append((mcnemar(won, lost).better, sign_flip_test(seen, clusters).better))
            spread = clustered_spread(seen, clusters)
            said.append(mean_power(gain, spread, len(seen), 0.01, len(sizes)))
    row: Row = {"name": size, "alike": alike, "share": share}
    row |= {"covers": _covers(bounds, share), "width": _width(bounds)}
    row |= {"covers difference": _covers(differences, 0.0)}
    exact = clopper_pearson(round(share * sizes.sum()), int(sizes.sum()))
    row |= {"independent width": exact.high - exact.low}
    row |= {"mcnemar": _level(single), "flips": _level(whole)}
    if power:
        mcnemars, flips = np.array(power).T
        row |= {"power mcnemar": _level(mcnemars), "power flips": _level(flips)}
        row |= {"power announced": float(np.mean(said))}
    return row


def _level(p_values: Any) -> float:
    return float(np.mean(np.asarray(p_values) <= 0.01))


def _solved(rng: Generator, sizes: Any, share: float, alike: float) -> Floats:
    """Return 0 or 1 for each task; `alike`: the correlation of two tasks of one cluster."""
    if alike == 0:
        chance = np.full(len(sizes), share)
    elif alike == 1:
        chance = (rng.random(len(sizes)) < share).astype(float)
    else:
        together = 1 / alike - 1
        chance = rng.beta(share * together, (1 - share) * together, len(sizes))
    solved: Floats = (rng.random(int(sizes.sum())) < np.repeat(chance, sizes)).astype(float)
    return solved


class Simulation:
    """All cells; a finished one is a line of `rows.jsonl`, and is read from there."""

    def __init__(self, file: Path, samples: int) -> None:
        self.file, self.samples = file, samples
        self.cells = dict([*share_cells(), *difference_cells(), *cluster_cells()])
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.rows: dict[str, Row] = {row["key"]: row for row in map(json.loads, lines)}

    def row(self, key: str, again: bool = False) -> Row:
        """Return a cell's row. again: with four times the samples, another seed and more draws."""
        samples, draws = (4 * self.samples, 2000) if again else (self.samples, 500)
        name = f"{key} {samples} samples"
        if name not in self.rows:
            row = self.cells[key](np.random.default_rng(list(name.encode())), samples, draws)
            self.rows[name] = {"key": name, "cell": key, "samples": samples} | row
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(self.rows[name]) + "\n")
        return self.rows[name]

    def of(self, kind: str) -> list[Row]:
        return [self.row(key) for key in self.cells if key.startswith(kind)]

    def worst(self, rows: list[Row], name: str, most: bool = False) -> str:
        """Return the value of the worst cell, simulated again so that the choice of the worst does
        not count, with its standard error and its place.
        """
        if not (known := [row for row in rows if name in row]):
            return ""
        row = (max if most else min)(known, key=lambda each: float(each[name]))
        row = self.row(row["cell"], again=True)
        value, samples = float(row[name]), int(row["samples"])
        error = (max(value * (1 - value), 1 / samples) / samples) ** 0.5
        where = f"{row['name']}, {row['share']}" + (f", n {row['n']}" if "n" in row else "")
        return f"{value:.3f} ({error:.3f}; {where})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=500)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    simulation = Simulation(arguments.folder / "rows.jsonl", arguments.samples)
    print_shares(simulation)
    print_differences(simulation)
    print_clusters(simulation)


def print_shares(simulation: Simulation) -> None:
    rows, worst = simulation.of("share"), simulation.worst
    print("\n| tasks | k | Gaffke, worst | percentile bootstrap, worst | width at 0.5 (beta 1) |")
    print("|---|---|---|---|---|")
    for tasks, k in product(TASKS, (1, 5, 10)):
        some = [row for row in rows if (row["tasks"], row["k"]) == (tasks, k)]
        widths = [row for row in some if (row["share"], row["name"]) == (0.5, "beta 1")]
        shown = ", ".join(f"n {row['n']}: {row['width']:.3f}" for row in widths)
        print(f"| {tasks} | {k} | {worst(some, 'covers')} | {worst(some, 'bootstrap')} | {shown} |")


def print_differences(simulation: Simulation) -> None:
    rows, worst = simulation.of("difference"), simulation.worst
    print("\n| truth | tasks | interval, worst | shown at 0.01, most | shown at 0.05, most |")
    print("|---|---|---|---|---|")
    for truth, tasks in product(TRUTHS, (20, 164, 400)):
        some = [row for row in rows if (row["name"], row["tasks"]) == (truth, tasks)]
        shown = [worst(some, f"shown at {level}", most=True) for level in (0.01, 0.05)]
        print(f"| {truth} | {tasks} | {worst(some, 'covers')} | {' | '.join(shown)} |")


def print_clusters(simulation: Simulation) -> None:
    rows, worst = simulation.of("cluster"), simulation.worst
    print(
        "\n| clusters | alike | share, worst | difference, worst | width at 0.5 (as independent) | "
        "McNemar at 0.01, most | sign flips at 0.01, most | +10: McNemar, flips (announced) |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for size, alike in product(SIZES, ALIKE):
        some = [row for row in rows if (row["name"], row["alike"]) == (size, alike)]
        [half] = [row for row in some if row["share"] == 0.5]
        power = ", ".join(f"{half[f'power {test}']:.2f}" for test in ("mcnemar", "flips"))
        cells = [
            worst(some, "covers"),
            worst(some, "covers difference"),
            f"{half['width']:.3f} ({half['independent width']:.3f})",
            worst(some, "mcnemar", most=True),
            worst(some, "flips", most=True),
            f"{power} ({half['power announced']:.2f})",
        ]
        print(f"| {size} | {alike} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
