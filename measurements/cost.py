"""What a solved problem costs: algorithms, early stopping, and spot machines with a fallback.

    python -m measurements.cost --home HOME --price 1.2
    python -m measurements.cost --home HOME --patience 2 3 5 --rates 0.01 0.05 0.2

Algorithms and early stopping are read from the finished trainings of a home: hours by their own
clocks, and the share of validation problems solved. Nothing is trained. Spot is planned, by
`spot_cost`, from rates that are assumptions: AWS' Spot Instance Advisor lists interruptions of less
than 5 % to more than 20 % of the instances a month, and single GPU types are far above it in busy
zones. So the table has 0.01 to 0.2 interruptions an hour, and a discount of 60 %.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resources.home import Home
from verl_jobs.config.checkpoints import StopSettings
from verl_jobs.job import VALIDATION, TrainingJob, metrics, read_done
from verl_jobs.metrics.figures import seconds_trained
from verl_jobs.trainer.early_stop import stop_reason

History = Sequence[Mapping[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, default=Path(".ratchet"))
    parser.add_argument("--problems", type=int, default=1000, help="that the share is of")
    parser.add_argument("--price", type=float, default=1.0, help="of an on-demand machine, hourly")
    parser.add_argument("--patience", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.05, 0.2])
    parser.add_argument("--discount", type=float, default=0.6)
    parser.add_argument("--restart", type=float, default=0.1, help="hours, with the image's pull")
    arguments = parser.parse_args()

    print("| training | algorithm | rule | steps | hours | solved | a solved problem |")
    print("|---" * 7 + "|")
    saves = []
    for file in sorted(Home(arguments.home).runs.folder.glob("*/training/*/job.json")):
        if read_done(file.parent) is None:
            continue
        job, history = TrainingJob.read(file), metrics(file.parent)
        rules = {"all steps": history} | {
            f"patience {patience}": stopped(history, patience) for patience in arguments.patience
        }
        for rule, kept in rules.items():
            hours, share = seconds_trained(kept) / 3600, best(kept)
            solved = share * arguments.problems
            price = f"{hours * arguments.price / solved:.2g}" if solved else "none solved"
            print(
                f"| {job.run_id} | {job.training.algorithm} | {rule} | {kept[-1]['step']} "
                f"| {hours:.3f} | {share:.1%} | {price} |"
            )
        step_h = seconds_trained(history) / 3600 / max(1, job.training.steps)
        saves.append(step_h * job.training.save_every)
    if not saves:
        raise SystemExit(f"{arguments.home} has no finished training: run `ratchet demo` first")

    save_h = sum(saves) / len(saves)
    print(f"\nSpot with a fallback to on-demand: a save each {60 * save_h:.1f} min, restart "
          f"{60 * arguments.restart:.0f} min, discount {arguments.discount:.0%}.\n")  # fmt: skip
    print("| interruptions an hour | cost, share of on-demand | time, share |\n|---|---|---|")
    for rate in arguments.rates:
        cost, time = spot_cost(rate, save_h, arguments.restart, arguments.discount)
        print(f"| {rate:g} | {cost:.2f} | {time:.2f} |")


def stopped(history: History, patience: int) -> History:
    """Return the steps until the training's own rules stop it, with this patience."""
    stop = StopSettings(patience=patience)
    ends = [end for end, row in enumerate(history, 1) if VALIDATION in row]
    return next((history[:end] for end in ends if stop_reason(history[:end], stop)), history)


def best(history: History) -> float:
    """Return the best validation score, in [0, 1]; 0 without one."""
    return max((float(row[VALIDATION]) for row in history if VALIDATION in row), default=0.0)


def spot_cost(rate: float, save_h: float, restart_h: float, discount: float) -> tuple[float, float]:
    """Return cost and time of an hour of progress on a spot machine, as shares of on-demand.

    rate: interruptions an hour (Poisson). After one, the machine is replaced by an on-demand one
    for the restart, and half a save's interval is lost on average.
    """
    lost = rate * (save_h / 2 + restart_h)
    if lost >= 1:
        return math.inf, math.inf
    hours = 1 / (1 - lost)
    restarts = hours * rate * restart_h
    return (hours - restarts) * (1 - discount) + restarts, hours


if __name__ == "__main__":
    main()
