"""False positive rate and power of the promotion gate, by simulation.

`python -m measurements.gate_error [pairs]`: 2,000 null pairs per row through
`evaluation.promotion.gate.decide`, 500 pairs for each gain, 400 tasks each. About a minute.
`shared` is how far both models agree beyond chance: with 0.5, half of the tasks have the same
result for both, as for two steps of one training.
"""

from __future__ import annotations

import sys

import numpy as np

from evaluation.promotion.gate import Policy, decide
from evaluation.scorecard import Sample, Scorecard
from evaluation.statistics.hypothesis_tests import power, wilson

TASKS = 400


def card(name: str, solved: np.ndarray) -> Scorecard:
    samples = tuple(
        Sample.model_construct(
            task_id=str(i), completion="", program="", verdict="AC" if s else "WA"
        )
        for i, s in enumerate(solved)
    )
    return Scorecard.model_construct(
        benchmark="simulated",
        benchmark_version="1",
        harness_version="1",
        checkpoint=name,
        checkpoint_hash=name,
        sampling={},
        isolation="",
        samples=samples,
    )


def pair(
    rng: np.random.Generator, share: float, gain: float, shared: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return which tasks a champion with `share` and a challenger with `share + gain` solve.

    On a `shared` part of the tasks the two differ by the gain alone.
    """
    draw = rng.random(TASKS)
    other = np.where(rng.random(TASKS) < shared, draw, rng.random(TASKS))
    return draw < share, other < share + gain


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    policy, rng = Policy(), np.random.default_rng(0)
    print(f"policy: alpha {policy.alpha}, minimum gain {policy.minimum_gain}; {TASKS} tasks")
    print("| true gain | champion | shared | pairs | promoted | share (95 % interval) | exact |")
    print("|---|---|---|---|---|---|---|")
    for gain in (0.0, 0.05, 0.1):
        for share in (0.3, 0.5):
            for shared in (0.0, 0.5):
                count = pairs if gain == 0 else pairs // 4
                promoted = 0
                for _ in range(count):
                    before, after = pair(rng, share, gain, shared)
                    promoted += decide(
                        card("champion", before), card("challenger", after), policy
                    ).promoted
                discordant = shared * gain + (1 - shared) * (
                    share * (1 - share - gain) + (share + gain) * (1 - share)
                )
                # At gain 0 this is the test's exact level, below alpha because it is discrete.
                exact = f"{power(gain, discordant, TASKS, policy.alpha):.4f}"
                low, high = wilson(promoted, count)
                rate = f"{promoted / count:.4f} ({low:.4f} to {high:.4f})"
                print(
                    (
                        f"| {100 * gain:+.0f} points | {share} | {shared} | {count} | {promoted} "
                        f"| {rate} | {exact} |"
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
