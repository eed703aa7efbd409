"""Check whether a training fits its GPUs with its configured layout.

In: the model's shape, the GPU, the training. Out: nothing, or DoesNotFit with the numbers and the
layout that `ratchet plan` suggests. Both ask `estimate` (planner.py). Its formulas hold for FSDP2
with trainer and engine on the same GPUs; other layouts are not checked.
"""

from __future__ import annotations

from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.planner.planner import RESERVE, estimate, plan
from verl_jobs.planner.shapes import GIB, DoesNotFit, Gpu, ModelShape


def formulas_apply(scale: ScaleSettings) -> bool:
    """Whether the formulas hold for this layout; others are not checked."""
    return not scale.megatron and scale.placement != "separate_async"


def check_fit(shape: ModelShape, gpu: Gpu, training: Training) -> None:
    """Raise DoesNotFit if this layout does not fit; the message has one that does, if any."""
    if not formulas_apply(training.scale):
        return
    faults = estimate(shape, gpu, training).faults
    if faults:
        best = plan(shape, gpu, training.ranks, training)
        raise DoesNotFit(
            f"{shape.name} in this layout does not fit on {training.ranks} x {gpu.name} "
            f"({gpu.memory / GIB:.0f} GiB each, {RESERVE / GIB:.0f} of them "
            f"reserved): {' and '.join(faults)}. This fits: "
            f"{' '.join(f'--set {line}' for line in best.changes()[1:])}"
        )
