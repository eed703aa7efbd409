"""Whether a review improves a program: the correlation of the two over the samples of a training.

In: samples of a Reviewer's training, each with a correction after the comment and a control without
one. Out: a sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from verl_jobs.agents.rollout import BONUS
from verl_jobs.samples import Sample

if TYPE_CHECKING:
    import numpy as np

RESAMPLES, SEED = 1000, 1


def improvement(samples: Sequence[Sample]) -> str:
    """Return the correlation of "with a review" (1, else 0) and the value of the corrected program.

    The 95 % interval resamples problems. Programs that all have the same value have no correlation.
    """
    import numpy as np

    by_problem: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for sample in samples:
        by_problem[sample.problem_id].append(values(sample))
    groups = [np.array(pairs) for pairs in by_problem.values()]
    counts = f"{len(samples):,} comments on {len(groups):,} problems"
    found = _correlation(groups)
    if found is None:
        return f"Correlation of review and improvement: none, the programs do not differ; {counts}."
    random = np.random.default_rng(SEED)
    drawn = (
        _correlation([groups[at] for at in random.integers(len(groups), size=len(groups))])
        for _ in range(RESAMPLES)
    )
    low, high = np.quantile([each for each in drawn if each is not None], (0.025, 0.975))
    control, commented = np.concatenate(groups).mean(axis=0)
    return (
        f"Correlation of review and improvement: {found:+.2f} ({low:+.2f} to {high:+.2f}); mean "
        f"value of the program {commented:+.3f} with the comment, {control:+.3f} without; {counts}."
    )


def values(sample: Sample) -> tuple[float, float]:
    """Return the value of the control and of the correction after the comment.

    The reward is half their difference; the trace has the components of the correction.
    """
    commented = sum(part for name, part in sample.trace.items() if name != BONUS)
    return commented - 2.0 * sample.reward, commented


def _correlation(groups: Sequence[np.ndarray]) -> float | None:
    """Return Pearson's correlation of the column (0 control, 1 commented) and the value."""
    import numpy as np

    after = np.concatenate([np.zeros((0, 2)), *groups]).T.ravel()  # the controls, then the others
    if not after.size or np.ptp(after) < 1e-9:
        return None
    return float(np.corrcoef(np.repeat((0.0, 1.0), after.size // 2), after)[0, 1])
