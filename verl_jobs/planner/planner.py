"""Estimate a training's memory per phase and seconds per step before any hardware is rented.

In: a `Shape`, a `Gpu` and how many, a `Training`. Out: a `Plan` that fits, or `DoesNotFit` with the
numbers. The memory formulas are in verl_jobs/planner/memory.py. The rates on GPUs are assumptions,
named below, and not measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from verl_jobs.config.scale import Scale, layout_error
from verl_jobs.config.training import Training
from verl_jobs.planner.memory import CRITIC, critic_bytes, resident_bytes, update_bytes
from verl_jobs.planner.shapes import GIB, DoesNotFit, Gpu, Shape

MFU = 0.35  # share of the peak, training with FSDP; verl publishes 0.31 to 0.40
BANDWIDTH = 0.6  # share of the peak, decoding
RESERVE = 4 * GIB  # CUDA context, NCCL, fragmentation
MICRO_BATCHES = (65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024, 512)  # tokens per forward pass


@dataclass(frozen=True)
class Plan:
    """A layout that fits: bytes per GPU in each phase, seconds of each part of a step."""

    shape: Shape
    gpu: Gpu
    gpus: int
    micro_batch: int  # tokens per forward pass and GPU
    tensor_parallel: int  # of the engine
    offload: bool  # optimizer and parameters are in host memory while the engine generates
    update: dict[str, int]
    rollout: dict[str, int]
    concurrent: int  # completions of maximum length that the KV caches hold at once, over all GPUs
    seconds: dict[str, float]
    tokens: int  # tokens that a step trains on, with prompts and completions at maximum length
    undone: tuple[str, ...] = ()  # layout settings of the training that this plan changes

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / sum(self.seconds.values())

    def changes(self) -> list[str]:
        """Return the arguments for `ratchet train --set`."""
        return [
            f"training.ranks={self.gpus}",
            f"training.scale.micro_batch_tokens={self.micro_batch}",
            f"training.scale.tensor_parallel={self.tensor_parallel}",
            f"training.scale.offload={'idle' if self.offload else 'none'}",
            *self.undone,
        ]


def plan(shape: Shape, gpu: Gpu, gpus: int, training: Training) -> Plan:
    """Return the plan with the largest micro-batch that fits, with offloading only if necessary.

    Raises DoesNotFit with the numbers.
    """
    # the plan's values
    scale_of_plan = training.scale.model_copy(
        update={"tensor_parallel": 1, "shards": 0, "accumulation": 0, "sequence_parallel": 1}
    )
    if error := layout_error(
        scale_of_plan, "vllm", gpus, training.problems_per_step, training.group_size
    ):
        raise DoesNotFit(f"{gpus} x {gpu.name}, a rank each: {error}")
    longest = training.prompt_tokens + training.response_tokens
    room, scale = gpu.memory - RESERVE, training.scale
    if int(scale.engine_memory * gpu.memory) > room:
        raise DoesNotFit(
            f"training.scale.engine_memory {scale.engine_memory} leaves less than "
            f"{RESERVE / GIB:.0f} GiB of a {gpu.name} free: lower it"
        )
    mixed, checkpointing = scale.precision != "fp32", scale.activation_checkpointing is not False

    def needs(tokens: int, offload: bool) -> dict[str, int]:
        critic = 0 if offload else critic_bytes(shape, training) // gpus
        update = update_bytes(
            shape, tokens, gpus, mixed=mixed, checkpointing=checkpointing, lora=training.lora
        )
        return update | ({CRITIC: critic} if critic else {})

    for offload in (False, True):
        resident = (
            resident_bytes(needs(0, offload)) if not offload else 0
        )  # memory in use next to the engine
        parallel = next(
            (
                size
                for size in (1, 2, 4, 8)
                if engine_fits(shape, gpu, gpus // scale.nodes, size, resident, scale.engine_memory)
            ),
            0,
        )
        for tokens in (size for size in MICRO_BATCHES if size >= longest):
            update = needs(tokens, offload)
            if parallel and sum(update.values()) <= room:
                return _build_plan(shape, gpu, gpus, training, tokens, parallel, offload, update)
    least = needs(max(longest, MICRO_BATCHES[-1]), True)
    parts = ", ".join(f"{name} {size / GIB:.1f}" for name, size in least.items())
    raise DoesNotFit(
        f"{shape.name} does not fit on {gpus} x {gpu.name} ({gpu.memory / GIB:.0f} GiB each, "
        f"{RESERVE / GIB:.0f} of them reserved): an update of "
        f"one sequence of {longest} tokens takes {sum(least.values()) / GIB:.1f} GiB a GPU "
        f"({parts}), the engine "
        f"{2 * shape.parameters / GIB:.1f} GiB of weights within {scale.engine_memory:.0%} of its "
        "GPUs (training.scale.engine_memory): "
        "use more GPUs, or shorter sequences"
    )


def engine_fits(
    shape: Shape, gpu: Gpu, machine_gpus: int, parallel: int, resident: int, share: float
) -> bool:
    """Whether an engine over `parallel` of the `together` GPUs of one machine fits.

    Its weights, and a KV cache of at least the same size, must fit into its `share` of each GPU, in
    addition to `resident` bytes and the reserve.
    """
    divisible, engine = (
        machine_gpus % parallel == 0 and shape.kv_heads % parallel == 0,
        int(share * gpu.memory),
    )
    return (
        divisible
        and 2 * (2 * shape.parameters // parallel) <= engine
        and engine + resident + RESERVE <= gpu.memory
    )


def _build_plan(
    shape: Shape,
    gpu: Gpu,
    gpus: int,
    t: Training,
    micro: int,
    parallel: int,
    offload: bool,
    update: dict[str, int],
) -> Plan:
    longest, engines = t.prompt_tokens + t.response_tokens, gpus // parallel
    # tokens trained on, completions generated
    tokens, completions = (
        t.problems_per_step * t.group_size * longest,
        t.problems_per_step * (t.group_size + t.method.greedy),
    )
    weights = 2 * shape.parameters // parallel
    cache = int(t.scale.engine_memory * gpu.memory) - weights
    concurrent = engines * parallel * cache // (shape.kv_bytes() * longest)
    if concurrent == 0:
        key = "agents.tokens" if t.agents.turns > 1 else "answer_tokens"
        raise DoesNotFit(
            f"a KV cache of {cache / GIB:.1f} GiB does not hold one sequence of {longest} tokens: "
            f"shorten training.{key}"
        )
    resident = 0 if offload else resident_bytes(update)
    rollout = {"engine's weights": weights, "KV cache": cache, "trainer's, resident": resident}
    rounds = ceil(completions / concurrent)
    at_once = ceil(completions / rounds / engines)
    # bytes per decoding step and GPU
    bytes_read = (
        weights + at_once * (t.prompt_tokens + t.response_tokens / 2) * shape.kv_bytes() / parallel
    )
    seconds = {
        "rollout": rounds * t.response_tokens * bytes_read / (gpu.bandwidth * BANDWIDTH)
    } | _training_seconds(shape, t, tokens, gpus * gpu.flops * MFU)
    usual = {
        name: Scale.model_fields[name].default
        for name in ("shards", "accumulation", "sequence_parallel")
    }
    undone = tuple(
        f"training.scale.{name}={value}"
        for name, value in usual.items()
        if getattr(t.scale, name) != value
    )
    return Plan(
        shape,
        gpu,
        gpus,
        micro,
        parallel,
        offload,
        update,
        rollout,
        concurrent,
        seconds,
        tokens,
        undone,
    )


def _training_seconds(shape: Shape, t: Training, tokens: int, compute: float) -> dict[str, float]:
    """Return the seconds of the compute-bound parts at `compute` FLOP/s.

    A forward pass takes 2 FLOP per parameter and token, a backward pass 4, and 2 more if
    activations are recomputed. A reference and a critic have the policy's shape; a critic evaluates
    every token and trains on it.
    """
    forward = 2 * shape.parameters * tokens / compute
    update = (3 if t.scale.activation_checkpointing is False else 4) * forward
    seconds = {"old log-probabilities": forward, "update": update}
    if t.kl_coefficient:
        seconds["reference"] = forward
    if t.method.critic:
        seconds |= {"critic's values": forward, "critic's update": update}
    return seconds
