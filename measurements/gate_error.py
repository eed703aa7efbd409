"""The gate's own error rates, by simulation: how often it promotes a challenger that is no better,
and how often it sees one that is.

`python -m measurements.gate_error [pairs]`: 2,000 null pairs a row of 400 tasks through
`evaluation.promotion.gate.decide`, 500 for each gain. About a minute. Shared: how far both models
agree beyond chance; 0.5 means that half of the tasks are decided by the task alone, as for two
steps of one run.
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
    """Champion with `share`, challenger with `share + gain`; on a `shared` part of the tasks the
    two agree but for the gain.
    """
    draw = rng.random(TASKS)
    other = np.where(rng.random(TASKS) < shared, draw, rng.random(TASKS))
    return draw < share, other < share + gain


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    policy, rng = Policy(), np.random.default_rng(0)
    print(f"policy: alpha {policy.alpha}, minimum gain {policy.minimum_gain}; {TASKS} tasks")
    print(
        "| true gain | champion | shared | pairs | promoted | share (95 % interval) | announced |"
    )
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
                # exact; at gain 0 the level, which a discrete test keeps below alpha
                said = f"{power(gain, discordant, TASKS, policy.alpha):.4f}"
                low, high = wilson(promoted, count)
                shown = f"{promoted / count:.4f} ({low:.4f} to {high:.4f})"
                print(
                    (
                        f"| {100 * gain:+.0f} points | {share} | {shared} | {count} | {promoted} "
                        f"| {shown} | {said} |"
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
