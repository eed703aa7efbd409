"""Estimate a training's memory per phase and seconds per step before any hardware is rented.

`estimate` takes a model's shape, a GPU and a training with its layout, and returns a `LayoutPlan`:
bytes, seconds, and the reasons why the layout does not fit, if any. `plan` looks for a layout that
fits, and `check_fit` (fit.py) refuses one that does not; both ask `estimate`. The memory formulas
are in memory.py. The rates are assumptions, named below. measurements/published_runs.py compares
both with published runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from verl_jobs.config.scale import layout_error, recomputes, token_budget
from verl_jobs.config.training import Training
from verl_jobs.planner.memory import (
    CRITIC,
    STATE,
    critic_bytes,
    log_prob_bytes,
    logits_width,
    resident_bytes,
    update_bytes,
)
from verl_jobs.planner.seconds import step_seconds
from verl_jobs.planner.shapes import GIB, DoesNotFit, Gpu, ModelShape

RESERVE = 4 * GIB  # CUDA context, NCCL, fragmentation
MAX_TOKENS, ROUND = 65_536, 1024  # of a forward pass that `plan` suggests: the most, a multiple
PARALLEL = (1, 2, 4, 8)  # GPUs of one machine that share a sequence, or an engine


@dataclass(frozen=True)
class LayoutPlan:
    """A layout: bytes per GPU in each phase, seconds of each part of a step."""

    shape: ModelShape
    gpu: Gpu
    training: Training  # with the layout
    update: dict[str, int]
    rollout: dict[str, int]
    concurrent: int  # completions of maximum length that the KV caches hold at once, over all GPUs
    seconds: dict[str, float]
    faults: tuple[str, ...]  # why the layout does not fit; empty if it does

    @property
    def gpus(self) -> int:
        return self.training.ranks

    @property
    def tokens(self) -> int:
        """Tokens that a step trains on, with prompts and completions at maximum length."""
        t = self.training
        return t.problems_per_step * t.group_size * longest(t)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / sum(self.seconds.values())

    def changes(self) -> list[str]:
        """Return the arguments for `ratchet train --set`: the whole layout."""
        scale = self.training.scale
        shown = ("micro_batch_tokens", "tensor_parallel", "offload", "sequence_parallel", "shards")
        values = {name: getattr(scale, name) for name in (*shown, "accumulation")}
        if scale.accumulation:
            values.pop("micro_batch_tokens")
        return [
            f"training.ranks={self.gpus}",
            *(f"training.scale.{name}={value}" for name, value in values.items()),
        ]


def longest(training: Training) -> int:
    """Return the tokens of the longest prompt with the longest completion."""
    return training.prompt_tokens + training.response_tokens


def rank_tokens(training: Training) -> int:
    """Return the tokens that a rank has in one optimizer update, all at maximum length."""
    t = training
    return t.problems_per_step * t.group_size * longest(t) // t.ranks // t.scale.updates


def forward_tokens(training: Training) -> int:
    """Return the tokens of a forward pass on one GPU.

    A forward pass filled by tokens has that many on each GPU of a group that shares sequences. A
    forward pass of a number of completions is divided among the group.
    """
    scale, most = training.scale, rank_tokens(training)
    if scale.accumulation:
        return most // scale.accumulation // scale.sequence_parallel
    return min(most, token_budget(scale, longest(training)))


def update_of(shape: ModelShape, training: Training, tokens: int | None = None) -> dict[str, int]:
    """Return the bytes of an update on each GPU, for the layout's tokens of a forward pass."""
    t, scale = training, training.scale
    sharers = scale.shards or t.ranks
    update = update_bytes(
        shape,
        forward_tokens(t) if tokens is None else tokens,
        sharers,
        mixed=scale.precision != "fp32",
        checkpointing=recomputes(scale, t.engine),
        lora=t.lora,
        logits=logits_width(t),
    )
    if scale.offload == "always":
        return {name: size for name, size in update.items() if name not in STATE}
    critic = critic_bytes(shape, t) // sharers if scale.offload == "none" else 0
    return update | ({CRITIC: critic} if critic else {})


def estimate(shape: ModelShape, gpu: Gpu, training: Training) -> LayoutPlan:
    """Return what this training's layout takes on `training.ranks` of these GPUs, and its faults.

    For FSDP2 with trainer and engine on the same GPUs.
    """
    t, scale = training, training.scale
    update = update_of(shape, t)
    resident = resident_bytes(update) if scale.offload == "none" else 0
    engine, weights = int(scale.engine_memory * gpu.memory), 2 * shape.parameters
    cache = engine - weights // scale.tensor_parallel
    concurrent = max(0, t.ranks * cache // (shape.kv_bytes() * longest(t)))
    rollout = {
        "engine's weights": weights // scale.tensor_parallel,
        "KV cache": max(0, cache),
        "trainer's, resident": resident,
    }
    faults = tuple(
        _faults(shape, gpu, t, update, resident=resident, cache=cache, concurrent=concurrent)
    )
    seconds = step_seconds(shape, gpu, t, concurrent)
    return LayoutPlan(
        shape=shape,
        gpu=gpu,
        training=t,
        update=update,
        rollout=rollout,
        concurrent=concurrent,
        seconds=seconds,
        faults=faults,
    )


def _faults(
    shape: ModelShape,
    gpu: Gpu,
    t: Training,
    update: dict[str, int],
    *,
    resident: int,
    cache: int,
    concurrent: int,
) -> Iterator[str]:
    scale, total = t.scale, sum(update.values())
    engine, parallel = int(scale.engine_memory * gpu.memory), scale.tensor_parallel
    weights = 2 * shape.parameters // parallel
    if total > gpu.memory - RESERVE:
        parts = ", ".join(f"{name} {size / GIB:.1f}" for name, size in update.items() if size)
        yield f"an update takes {total / GIB:.1f} GiB a GPU ({parts})"
    if scale.log_prob_tokens:
        fused = scale.fused_head
        passes = log_prob_bytes(shape, scale.log_prob_tokens, scale.shards or t.ranks, fused=fused)
        if sum(passes.values()) > gpu.memory - RESERVE:
            yield (
                f"{scale.log_prob_tokens} tokens without gradients (log_prob_tokens) take "
                f"{sum(passes.values()) / GIB:.1f} GiB a GPU"
            )
    budgets = {"micro_batch_tokens": token_budget(scale, longest(t))}
    budgets |= {"log_prob_tokens": scale.log_prob_tokens} if scale.log_prob_tokens else {}
    for name, tokens in budgets.items():
        held = tokens * scale.sequence_parallel
        if not scale.accumulation and held < longest(t):
            yield (
                f"a forward pass of {held} tokens ({name} x sequence_parallel) does not hold a "
                f"sequence of {longest(t)}"
            )
    if engine + RESERVE > gpu.memory:
        yield (
            f"training.scale.engine_memory {scale.engine_memory} leaves less than "
            f"{RESERVE / GIB:.0f} GiB of a {gpu.name} free: lower it"
        )
    elif cache < weights or engine + resident + RESERVE > gpu.memory:
        yield (
            f"the engine's {weights / GIB:.1f} GiB of weights and a cache of the same size do not "
            f"fit into {scale.engine_memory:.0%} of a GPU (training.scale.engine_memory) next to "
            f"{resident / GIB:.1f} GiB"
        )
    elif concurrent == 0:
        key = "agents.tokens" if t.agents.several else "answer_tokens"
        yield (
            f"a KV cache of {cache / GIB:.1f} GiB does not hold one sequence of {longest(t)} "
            f"tokens: shorten training.{key}"
        )
    if (t.ranks // scale.nodes) % parallel or shape.kv_heads % parallel:
        yield (
            f"tensor_parallel {parallel} must divide the {t.ranks // scale.nodes} GPUs of a "
            f"machine and the model's {shape.kv_heads} key-value heads"
        )
    if shape.heads % scale.sequence_parallel:
        yield (
            f"sequence_parallel {scale.sequence_parallel} must divide the model's {shape.heads} "
            "heads"
        )


def plan(shape: ModelShape, gpu: Gpu, gpus: int, training: Training) -> LayoutPlan:
    """Return the training's own layout if it fits on `gpus` GPUs, else the first one that does.

    Tokens of a forward pass that are not configured are as many as fit. Other layouts are tried
    from the fastest to the smallest: state offloaded only if necessary, sequences and engines
    shared by as few GPUs as possible. Raises DoesNotFit with the numbers.
    """
    engine = "vllm" if training.engine == "hf" else training.engine
    start = training.model_copy(update={"ranks": gpus, "engine": engine})
    alone = _with(start, tensor_parallel=1, shards=0, accumulation=0, sequence_parallel=1)
    if error := _error(alone):
        raise DoesNotFit(f"{gpus} x {gpu.name}, a rank each: {error}")
    for layout in _layouts(shape, gpu, start):
        found = estimate(shape, gpu, layout)
        if not found.faults:
            return found
    smallest = _with(alone, offload="idle", micro_batch_tokens=longest(training))
    why = estimate(shape, gpu, smallest).faults or ("no layout that was tried fits",)
    raise DoesNotFit(
        f"{shape.name} does not fit on {gpus} x {gpu.name} ({gpu.memory / GIB:.0f} GiB each, "
        f"{RESERVE / GIB:.0f} of them reserved), one sequence a forward pass: "
        f"{' and '.join(why)}. No sharing of sequences or engines and no offloading helps: use "
        "more GPUs, or shorter sequences"
    )


def _layouts(shape: ModelShape, gpu: Gpu, start: Training) -> Iterator[Training]:
    """Yield the configured layout, then others that divide evenly, the preferred first."""
    set_by_user = start.scale.micro_batch_tokens or start.scale.accumulation
    if not _error(start):
        yield start if set_by_user else _filled(shape, gpu, start)
    for offload in ("none", "idle", "always"):
        for sequence_parallel in PARALLEL:
            for tensor_parallel in PARALLEL:
                layout = _with(
                    start,
                    offload=offload,
                    sequence_parallel=sequence_parallel,
                    tensor_parallel=tensor_parallel,
                    shards=0,
                    accumulation=0,
                )
                if not _error(layout):
                    yield _filled(shape, gpu, layout)


def _filled(shape: ModelShape, gpu: Gpu, layout: Training) -> Training:
    """Return the layout with the most tokens of a forward pass that fit, but one sequence at least.

    Memory is linear in the tokens.
    """
    fixed = sum(update_of(shape, layout, 0).values())
    a_token = sum(update_of(shape, layout, 1).values()) - fixed
    fit = min(MAX_TOKENS, rank_tokens(layout), (gpu.memory - RESERVE - fixed) // a_token)
    least = ceil(longest(layout) / layout.scale.sequence_parallel)
    return _with(layout, micro_batch_tokens=max(least, fit // ROUND * ROUND))


def _with(training: Training, **scale: object) -> Training:
    return training.model_copy(update={"scale": training.scale.model_copy(update=scale)})


def _error(t: Training) -> str:
    return layout_error(t.scale, t.engine, t.ranks, t.problems_per_step, t.group_size)
