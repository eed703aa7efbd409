"""What a training takes, before anything is rented: memory of each phase and seconds a step, from the model's shape and stated formulas.

In: a `Shape`, a `Gpu` and how many, a `Training`. Out: a `Plan` that fits, or `DoesNotFit` with the numbers. The formulas of memory are those of
verl_jobs/planner/memory.py; rates on GPUs are assumptions, named below, not measured here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from verl_jobs.config.scale import Scale, misfit
from verl_jobs.config.training import Training
from verl_jobs.planner.memory import CRITIC, critic_bytes, kept_of, update_bytes
from verl_jobs.planner.shapes import GIB, DoesNotFit, Gpu, Shape

MFU = 0.35  # of the peak, training with FSDP; verl publishes 0.31 to 0.40
BANDWIDTH = 0.6  # of the peak, decoding
RESERVE = 4 * GIB  # CUDA context, NCCL, fragmentation
MICRO_BATCHES = (65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024, 512)  # tokens a forward pass


@dataclass(frozen=True)
class Plan:
    """Bytes a GPU in each phase, seconds of each part of a step."""

    shape: Shape
    gpu: Gpu
    gpus: int
    micro_batch: int  # tokens a forward pass and GPU
    tensor_parallel: int  # of the engine
    offload: bool  # optimizer and parameters lie in the host's memory while the engine writes
    update: dict[str, int]
    rollout: dict[str, int]
    concurrent: int  # longest answers that the KV caches hold at once, over all GPUs
    seconds: dict[str, float]
    tokens: int  # that a step learns from, prompts and answers at their longest
    undone: tuple[
        str, ...
    ] = ()  # what the training was told of its layout and this plan has otherwise

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / sum(self.seconds.values())

    def changes(self) -> list[str]:
        """What to give `ratchet train` with `--set`."""
        return [
            f"training.ranks={self.gpus}",
            f"training.scale.micro_batch_tokens={self.micro_batch}",
            f"training.scale.tensor_parallel={self.tensor_parallel}",
            f"training.scale.offload={'idle' if self.offload else 'none'}",
            *self.undone,
        ]


def plan(shape: Shape, gpu: Gpu, gpus: int, training: Training) -> Plan:
    """The plan with the largest micro-batch that fits, offloading only where it must. Raises DoesNotFit with the numbers."""
    asked = training.scale.model_copy(
        update={"tensor_parallel": 1, "shards": 0, "accumulation": 0, "sequence_parallel": 1}
    )  # as the plan has them
    if why := misfit(asked, "vllm", gpus, training.problems_per_step, training.group_size):
        raise DoesNotFit(f"{gpus} x {gpu.name}, a rank each: {why}")
    longest = training.prompt_tokens + training.response_tokens
    room, scale = gpu.memory - RESERVE, training.scale
    if int(scale.engine_memory * gpu.memory) > room:
        raise DoesNotFit(
            f"training.scale.engine_memory {scale.engine_memory} leaves no {RESERVE / GIB:.0f} GiB of a {gpu.name} free: lower it"
        )
    mixed, checkpointing = scale.precision != "fp32", scale.activation_checkpointing is not False

    def needs(tokens: int, offload: bool) -> dict[str, int]:
        beside = 0 if offload else critic_bytes(shape, training) // gpus
        update = update_bytes(
            shape, tokens, gpus, mixed=mixed, checkpointing=checkpointing, lora=training.lora
        )
        return update | ({CRITIC: beside} if beside else {})

    for offload in (False, True):
        kept = kept_of(needs(0, offload)) if not offload else 0  # beside the engine
        parallel = next(
            (
                size
                for size in (1, 2, 4, 8)
                if holds(shape, gpu, gpus // scale.nodes, size, kept, scale.engine_memory)
            ),
            0,
        )
        for tokens in (size for size in MICRO_BATCHES if size >= longest):
            update = needs(tokens, offload)
            if parallel and sum(update.values()) <= room:
                return _made(shape, gpu, gpus, training, tokens, parallel, offload, update)
    least = needs(max(longest, MICRO_BATCHES[-1]), True)
    told = ", ".join(f"{name} {size / GIB:.1f}" for name, size in least.items())
    raise DoesNotFit(
        f"{shape.name} does not fit on {gpus} x {gpu.name} ({gpu.memory / GIB:.0f} GiB each, {RESERVE / GIB:.0f} of them kept free): an update of "
        f"one sequence of {longest} tokens takes {sum(least.values()) / GIB:.1f} GiB a GPU ({told}), the engine "
        f"{2 * shape.parameters / GIB:.1f} GiB of weights within {scale.engine_memory:.0%} of its GPUs (training.scale.engine_memory): "
        "take more GPUs, or shorter sequences"
    )


def holds(shape: Shape, gpu: Gpu, together: int, parallel: int, kept: int, share: float) -> bool:
    """Whether an engine over `parallel` of the GPUs `together` in one machine has its weights and as much again for the KV cache within its `share`
    of each, beside what is kept and the reserve."""
    fair, engine = (
        together % parallel == 0 and shape.kv_heads % parallel == 0,
        int(share * gpu.memory),
    )
    return (
        fair
        and 2 * (2 * shape.parameters // parallel) <= engine
        and engine + kept + RESERVE <= gpu.memory
    )


def _made(
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
    tokens, answers = (
        t.problems_per_step * t.group_size * longest,
        t.problems_per_step * (t.group_size + t.method.greedy),
    )  # learned from, written
    weights = 2 * shape.parameters // parallel
    cache = int(t.scale.engine_memory * gpu.memory) - weights
    concurrent = engines * parallel * cache // (shape.kv_bytes() * longest)
    if concurrent == 0:
        key = "agents.tokens" if t.agents.turns > 1 else "answer_tokens"
        raise DoesNotFit(
            f"a KV cache of {cache / GIB:.1f} GiB does not hold one sequence of {longest} tokens: shorten training.{key}"
        )
    kept = 0 if offload else kept_of(update)
    rollout = {"engine's weights": weights, "KV cache": cache, "trainer's, kept": kept}
    rounds = ceil(answers / concurrent)
    at_once = ceil(answers / rounds / engines)
    read = (
        weights + at_once * (t.prompt_tokens + t.response_tokens / 2) * shape.kv_bytes() / parallel
    )  # bytes a decoding step and GPU
    seconds = {
        "rollout": rounds * t.response_tokens * read / (gpu.bandwidth * BANDWIDTH)
    } | _learning(shape, t, tokens, gpus * gpu.flops * MFU)
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


def _learning(shape: Shape, t: Training, tokens: int, compute: float) -> dict[str, float]:
    """Seconds of the parts that compute, at so many FLOP/s: a forward pass takes 2 FLOP a parameter and token, a backward pass 4, and 2 more where
    activations are computed again. A reference and a critic are of the policy's shape; a critic values every token and learns from it."""
    forward = 2 * shape.parameters * tokens / compute
    update = (3 if t.scale.activation_checkpointing is False else 4) * forward
    seconds = {"old log-probabilities": forward, "update": update}
    if t.kl_coefficient:
        seconds["reference"] = forward
    if t.method.critic:
        seconds |= {"critic's values": forward, "critic's update": update}
    return seconds
