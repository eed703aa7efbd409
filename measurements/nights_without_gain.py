"""Unearned promotions and false alarms over many nights without a gain, by simulation.

    python -m measurements.nights_without_gain [--histories 4000] [--nights 100]

Simulated: champion and challenger solve each of 400 tasks independently with the same chance. It is
drawn per task from a beta distribution (a + b = 1, mean 0.6), which resembles a trained model's.
The gate is McNemar's exact test at the level of the policy; the sensor is Fisher's exact test at
0.01, once a night, on two draws. Seeds are fixed. Prints Markdown tables.
"""

from __future__ import annotations

import argparse

import numpy as np

from evaluation.statistics.alpha_spending import Gate, Spending, next_level
from evaluation.statistics.hypothesis_tests import fisher_fall, mcnemar, smallest_gain, wilson

TASKS = 400
CHANGED = 0.25  # approximate share of tasks on which two such models differ
SETTINGS: tuple[tuple[Spending, float], ...] = (
    ("fresh", 0.01),
    ("fresh", 0.05),
    ("lord", 0.05),
    ("saffron", 0.05),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=4000)
    parser.add_argument("--nights", type=int, default=100)
    arguments = parser.parse_args()
    p_values, falls = simulated(arguments.histories, arguments.nights)
    print(
        f"| spending | alpha | histories of {arguments.nights} nights with an unearned promotion "
        "| 95 % interval |\n|---|---|---|---|"
    )
    for spending, alpha in SETTINGS:
        unearned = sum(promotes(spending, alpha, row) for row in p_values)
        low, high = wilson(unearned, len(p_values))
        share = unearned / len(p_values)
        print(f"| {spending} | {alpha} | {share:.2%} | {low:.2%} to {high:.2%} |")
    alarms, pairs = int((falls <= 0.01).sum()), falls.size
    low, high = wilson(alarms, pairs)
    print(
        f"\nFalse alarms of the sensor: {alarms} of {pairs} pairs of draws "
        f"({alarms / pairs:.2%}, interval {low:.2%} to {high:.2%}; its level is 1 %).\n"
    )
    levels()


def simulated(histories: int, nights: int) -> tuple[np.ndarray, np.ndarray]:
    """Return p-values of the gates (histories × nights), and of the sensor's tests in every 20th
    history.
    """
    rng = np.random.default_rng(18)
    gates, falls = np.ones((histories, nights)), []
    for row in range(histories):
        chances = rng.beta(0.6, 0.4, (nights, TASKS))
        champion, challenger = rng.random((2, nights, TASKS)) < chances
        won, lost = (challenger & ~champion).sum(1), (champion & ~challenger).sum(1)
        gates[row] = [mcnemar(int(a), int(b))[0] for a, b in zip(won, lost, strict=True)]
        if row % 20 == 0:
            before = champion.sum(1)
            falls += [
                fisher_fall(int(before[night - 1]), TASKS, int(before[night]), TASKS)
                for night in range(1, nights)
            ]
    return gates, np.array(falls)


def promotes(spending: Spending, alpha: float, p_values: np.ndarray) -> bool:
    """Return whether any night of the history promotes."""
    gates: list[Gate] = []
    for p_value in p_values:
        level = next_level(spending, alpha, gates)
        if p_value <= level:
            return True
        gates.append(gate(float(p_value), level))
    return False


def levels() -> None:
    """Print each rule's level after refusals, and with a promotion every fifth night."""
    print(
        "| spending | nights | level after refusals alone (gain shown) | a promotion every fifth |"
    )
    print("|---|---|---|---|")
    for spending, alpha in SETTINGS[2:]:
        for nights in (0, 10, 30, 100, 365):
            cells = []
            for every in (0, 5):
                gates: list[Gate] = []
                for night in range(1, nights + 1):
                    shown = every and night % every == 0
                    gates.append(gate(0.0 if shown else 0.6, next_level(spending, alpha, gates)))
                level = next_level(spending, alpha, gates)
                gain = smallest_gain(CHANGED, TASKS, level)
                cells.append(f"{level:.2g} ({100 * gain:.1f} points)" if gain else f"{level:.2g}")
            print(f"| {spending} | {nights} | {' | '.join(cells)} |")


def gate(p_value: float, level: float) -> Gate:
    return Gate(chain="", benchmark="heldout", benchmark_version="", p_value=p_value, level=level)


if __name__ == "__main__":
    main()
