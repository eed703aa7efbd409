"""Check whether a training fits its GPUs with its configured layout.

The layout is its sharding, offloading, forward passes and engine; the check does not search for the
best one. In: the model's shape, the GPUs, the training. Out: nothing, or DoesNotFit with the
numbers and what `ratchet plan` would suggest. The formulas are the planner's
(verl_jobs/planner/memory.py, planner.py). They hold for FSDP2 with trainer and engine on the same
GPUs; other layouts are not checked.
"""

from __future__ import annotations

from verl_jobs.config.scale import Scale, recomputes, token_budget
from verl_jobs.config.training import Training
from verl_jobs.planner.memory import CRITIC, STATE, critic_bytes, resident_bytes, update_bytes
from verl_jobs.planner.planner import RESERVE, engine_fits, plan
from verl_jobs.planner.shapes import GIB, DoesNotFit, Gpu, Shape


def formulas_apply(scale: Scale) -> bool:
    """Whether the formulas hold for this layout; others are not checked."""
    return not scale.megatron and scale.placement != "separate_async"


def check_fit(shape: Shape, gpu: Gpu, training: Training) -> None:
    """Raise DoesNotFit if this layout does not fit; the message has one that does, if any."""
    scale, reasons = training.scale, list[str]()
    if not formulas_apply(scale):
        return
    update = update_of_layout(shape, training)
    resident = 0 if scale.offload != "none" else resident_bytes(update)
    if sum(update.values()) > gpu.memory - RESERVE:
        parts = ", ".join(f"{name} {size / GIB:.1f}" for name, size in update.items() if size)
        reasons.append(f"an update takes {sum(update.values()) / GIB:.1f} GiB a GPU ({parts})")
    if not engine_fits(
        shape,
        gpu,
        training.ranks // scale.nodes,
        scale.tensor_parallel,
        resident,
        scale.engine_memory,
    ):
        weights, share = (
            2 * shape.parameters / scale.tensor_parallel / GIB,
            f"{scale.engine_memory:.0%}",
        )
        reasons.append(
            f"the engine's {weights:.1f} GiB of weights and a cache of the same size do not fit "
            f"into {share} of a GPU next to {resident / GIB:.1f} GiB"
        )
    if reasons:
        best = plan(shape, gpu, training.ranks, training)
        raise DoesNotFit(
            f"{shape.name} in this layout does not fit on {training.ranks} x {gpu.name} "
            f"({gpu.memory / GIB:.0f} GiB each, {RESERVE / GIB:.0f} of them "
            f"reserved): {' and '.join(reasons)}. This fits: "
            f"{' '.join(f'--set {line}' for line in best.changes()[1:])}"
        )


def update_of_layout(shape: Shape, training: Training) -> dict[str, int]:
    """Return the bytes of an update on each GPU.

    A forward pass filled by tokens has that many on each GPU of a group that shares sequences. A
    forward pass of a number of completions is divided among the group.
    """
    t, scale = training, training.scale
    longest, sharers = t.prompt_tokens + t.response_tokens, scale.shards or t.ranks
    rank_tokens = t.problems_per_step * t.group_size * longest // t.ranks // scale.updates
    batch_tokens = (
        rank_tokens // scale.accumulation // scale.sequence_parallel if scale.accumulation else 0
    )
    tokens = batch_tokens or min(rank_tokens, token_budget(scale, t.engine, longest))
    mixed, checkpointing = scale.precision != "fp32", recomputes(scale, t.engine)
    update = update_bytes(
        shape, tokens, sharers, mixed=mixed, checkpointing=checkpointing, lora=t.lora
    )
    if scale.offload == "always":
        return {name: size for name, size in update.items() if name not in STATE}
    critic = critic_bytes(shape, t) // sharers if scale.offload == "none" else 0
    return update | ({CRITIC: critic} if critic else {})
