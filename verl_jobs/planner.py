"""What a training takes, before anything is rented: memory of each phase and seconds a step, from the model's shape and stated formulas.

In: a `Shape`, a `Gpu` and how many, a `Training`. Out: a `Plan` that fits, or `DoesNotFit` with the numbers. The memory of an update is checked
against torch's own memory tracker on a CPU (tests/verl_jobs/test_planner.py); rates on GPUs are assumptions, named below, not measured here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from verl_jobs.config import Training
from verl_jobs.lora import Lora
from verl_jobs.scale import Scale, misfit

GIB = 2**30
MFU = 0.35  # of the peak, training with FSDP; verl publishes 0.31 to 0.40
BANDWIDTH = 0.6  # of the peak, decoding
RESERVE = 4 * GIB  # CUDA context, NCCL, fragmentation
CPU_TOKENS, CPU_ROWS = 16_384, 512  # of a forward pass, and of one batch of the engine, on a CPU (scale.py, overrides.py)
STATE, CRITIC = ("weights", "gradients", "optimizer"), "critic"
MICRO_BATCHES = (65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024, 512)  # tokens a forward pass


@dataclass(frozen=True)
class Shape:
    """A decoder of Qwen2's kind (grouped-query attention, gated MLP, biases on query, key and value)."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    tied: bool

    @property
    def kv_width(self) -> int:
        """Of keys, and of values, in numbers a token and layer."""
        return self.hidden // self.heads * self.kv_heads

    @property
    def parameters(self) -> int:
        h, kv = self.hidden, self.kv_width
        layer = 2 * h * h + 2 * h * kv + (h + 2 * kv) + 3 * h * self.intermediate + 2 * h
        return self.vocabulary * h * (1 if self.tied else 2) + self.layers * layer + h

    def learned(self, lora: Lora | None) -> int:
        """How many numbers have a gradient: all, or those of the adapters, rank (in + out) a layer that wears one."""
        if lora is None:
            return self.parameters
        h, kv, wide = self.hidden, self.kv_width, self.intermediate
        sides = {
            "q_proj": 2 * h,
            "k_proj": h + kv,
            "v_proj": h + kv,
            "o_proj": 2 * h,
            "gate_proj": h + wide,
            "up_proj": h + wide,
            "down_proj": h + wide,
        }
        return self.layers * lora.rank * sum(sides[name] for name in (lora.modules or sides) if name in sides)

    def kv_bytes(self) -> int:
        """Of one token's KV cache in bfloat16."""
        return 2 * 2 * self.layers * self.kv_width


@dataclass(frozen=True)
class Gpu:
    """Memory in bytes, dense bfloat16 FLOP/s and bytes/s of memory, as its maker states them."""

    name: str
    memory: int
    flops: float
    bandwidth: float


QWEN = "Qwen/Qwen2.5-Coder-"
SHAPES = {
    shape.name: shape
    for shape in (
        Shape(f"{QWEN}0.5B", 896, 24, 14, 2, 4864, 151_936, True),
        Shape(f"{QWEN}1.5B", 1536, 28, 12, 2, 8960, 151_936, True),
        Shape(f"{QWEN}3B", 2048, 36, 16, 2, 11_008, 151_936, True),
        Shape(f"{QWEN}7B", 3584, 28, 28, 4, 18_944, 152_064, False),
        Shape(f"{QWEN}14B", 5120, 48, 40, 8, 13_824, 152_064, False),
        Shape(f"{QWEN}32B", 5120, 64, 40, 8, 27_648, 152_064, False),
    )
}
GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("RTX4090", 24 * GIB, 165e12, 1.01e12),
        Gpu("L40S", 48 * GIB, 362e12, 0.86e12),
        Gpu("A100-40", 40 * GIB, 312e12, 1.56e12),
        Gpu("A100-80", 80 * GIB, 312e12, 2.04e12),
        Gpu("H100", 80 * GIB, 989e12, 3.35e12),
        Gpu("H200", 141 * GIB, 989e12, 4.8e12),
        Gpu("B200", 180 * GIB, 2250e12, 7.7e12),
    )
}


class DoesNotFit(ValueError):
    """No configuration fits; the message has what is needed and what is there."""


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
    tokens: int  # a step, prompts and answers at their longest
    undone: tuple[str, ...] = ()  # what the training was told of its layout and this plan has otherwise

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


def shape_of(model: str) -> Shape:
    """The shape of a known hub id (an `-Instruct` of it too), or of a folder's config.json. Raises DoesNotFit naming what is known."""
    known = SHAPES.get(model.removesuffix("-Instruct"))
    path = Path(model) / "config.json"
    if known or not path.is_file():
        if known is None:
            raise DoesNotFit(f"no shape is known of {model!r}: give a folder with its config.json, or one of {', '.join(SHAPES)}")
        return replace(known, name=model)
    about = json.loads(path.read_text(encoding="utf-8"))
    try:
        return Shape(
            model, about["hidden_size"], about["num_hidden_layers"], about["num_attention_heads"], about["num_key_value_heads"],
            about["intermediate_size"], about["vocab_size"], bool(about.get("tie_word_embeddings", False)),
        )  # fmt: skip
    except KeyError as error:
        raise DoesNotFit(f"{path}: key {error} is missing: only dense decoders of Qwen2's and Llama's kind can be planned") from error


def update_bytes(
    shape: Shape, tokens: int, ranks: int, *, mixed: bool = True, checkpointing: bool = True, lora: Lora | None = None
) -> dict[str, int]:
    """Memory of the update on one of `ranks` GPUs, for a micro-batch of so many tokens.

    Weights, gradients and Adam's two moments lie in fp32, sharded: 16 bytes a parameter; with adapters 4, and 16 for each of theirs. The layer at
    work and its successor are gathered in the computing type. Activations, in numbers a token: with checkpointing each layer's input (hidden), and
    once a layer's own 9 hidden + 2 kv + 4 intermediate with 3 intermediate of gradients, or the head's 4 vocabularies (logits, their log-softmax,
    its gradient, theirs), whichever is more. mixed: bfloat16 (the head's copies but the first stay fp32), else fp32.
    """
    width = 2 if mixed else 4
    head = shape.vocabulary * (2 + 3 * 4 if mixed else 4 * 4)
    own = (9 * shape.hidden + 2 * shape.kv_width + 4 * shape.intermediate) * width
    inputs = shape.layers * shape.hidden * width
    if checkpointing:
        per_token = max(inputs + 3 * shape.hidden * width + head, inputs + own + 3 * shape.intermediate * width)
    else:
        per_token = shape.layers * own + head
    layer = (shape.parameters - shape.vocabulary * shape.hidden * (1 if shape.tied else 2)) // shape.layers
    gathered = 0 if ranks == 1 and not mixed else width * (2 * layer + shape.vocabulary * shape.hidden)
    learned = shape.learned(lora)
    return {
        "weights": 4 * (shape.parameters + (learned if lora else 0)) // ranks,
        "gradients": 4 * learned // ranks,
        "optimizer": 8 * learned // ranks,
        "gathered layers": gathered,
        "activations": tokens * per_token,
    }


def log_prob_bytes(shape: Shape, tokens: int, ranks: int, *, mixed: bool = True) -> dict[str, int]:
    """Memory of the old log-probabilities on one of `ranks` processes, for a micro-batch of so many tokens: no gradients, one layer's activations
    (5 hidden + 3 intermediate), or the head's logits and their copy in fp32, whichever is more."""
    update = update_bytes(shape, 0, ranks, mixed=mixed)
    width = 2 if mixed else 4
    per_token = max((5 * shape.hidden + 3 * shape.intermediate) * width, shape.hidden * width + shape.vocabulary * (width + 4))
    return {key: update[key] for key in ("weights", "optimizer", "gathered layers")} | {"activations": tokens * per_token}


def writing_bytes(shape: Shape, rows: int, prompt: int, answer: int) -> dict[str, int]:
    """Memory of the CPU engine (verl_jobs/cpu/decoding.py, fp32) beside the trainer's, for so many answers at once.

    The cache of every row at its longest with one layer of it copied while it grows, or the prompts' activations in one layer with the cache so far.
    """
    cached = 2 * shape.kv_bytes()  # of a token, in fp32
    cache = int(rows * (prompt + answer) * cached * (1 + 1 / shape.layers))
    reading = rows * prompt * (cached + 4 * (5 * shape.hidden + 3 * shape.intermediate))
    return {"engine's weights": 4 * shape.parameters, "KV cache": cache, "prompts at work": max(0, reading - cache)}


def cpu_phases(shape: Shape, training: Training) -> dict[str, dict[str, int]]:
    """Bytes of torch's allocations in each phase of a step on this machine's CPU, all ranks together; checked in tests/verl_jobs/test_ranks.py."""
    t, longest = training, training.prompt_tokens + training.response_tokens
    mine = t.problems_per_step * t.group_size // t.ranks
    budget = t.scale.micro_batch_tokens or CPU_TOKENS
    if t.scale.accumulation:
        budget = mine // t.scale.updates // t.scale.accumulation * longest
    tokens, learned = min(budget, mine * longest), min(budget, mine // t.scale.updates * longest)
    checkpointing = bool(t.scale.activation_checkpointing)
    resident = update_bytes(shape, 0, t.ranks, mixed=False, lora=t.lora)
    kept = {name: resident[name] for name in ("weights", "optimizer")}
    phases = {
        "writes": kept | writing_bytes(shape, min(mine, CPU_ROWS), t.prompt_tokens, t.response_tokens),
        "old log-probabilities": log_prob_bytes(shape, tokens, t.ranks, mixed=False) | kept,
        "update": update_bytes(shape, learned, t.ranks, mixed=False, checkpointing=checkpointing, lora=t.lora),
    }
    beside = (4 * shape.parameters if t.kl_coefficient and not t.lora else 0) + critic_bytes(shape, t)
    for phase in phases.values():
        phase |= {"reference, critic": beside // t.ranks} if beside else {}
    return {name: {key: t.ranks * size for key, size in phase.items()} for name, phase in phases.items()}


def critic_bytes(shape: Shape, training: Training) -> int:
    """Weights and moments of a critic of the policy's shape, over all ranks. A reference takes none on GPUs: verl keeps it in the host's memory."""
    return 12 * shape.parameters if training.method.critic else 0


def plan(shape: Shape, gpu: Gpu, gpus: int, training: Training) -> Plan:
    """The plan with the largest micro-batch that fits, offloading only where it must. Raises DoesNotFit with the numbers."""
    asked = training.scale.model_copy(update={"tensor_parallel": 1, "shards": 0, "accumulation": 0, "sequence_parallel": 1})  # as the plan has them
    if why := misfit(asked, "vllm", gpus, training.problems_per_step, training.group_size):
        raise DoesNotFit(f"{gpus} x {gpu.name}, a rank each: {why}")
    longest = training.prompt_tokens + training.response_tokens
    room, scale = gpu.memory - RESERVE, training.scale
    mixed, checkpointing = scale.precision != "fp32", scale.activation_checkpointing is not False

    def needs(tokens: int, offload: bool) -> dict[str, int]:
        beside = 0 if offload else critic_bytes(shape, training) // gpus
        update = update_bytes(shape, tokens, gpus, mixed=mixed, checkpointing=checkpointing, lora=training.lora)
        return update | ({CRITIC: beside} if beside else {})

    for offload in (False, True):
        kept = kept_of(needs(0, offload)) if not offload else 0  # beside the engine
        parallel = next((parallel for parallel in (1, 2, 4, 8) if holds(shape, gpu, gpus, parallel, kept, scale.engine_memory)), 0)
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


def kept_of(update: Mapping[str, int]) -> int:
    """Of the update, what stays in memory between two of them."""
    return sum(update.get(name, 0) for name in (*STATE, CRITIC))


def holds(shape: Shape, gpu: Gpu, gpus: int, parallel: int, kept: int, share: float) -> bool:
    """Whether an engine over `parallel` GPUs has its weights and as much again for the KV cache within its `share` of each, beside what is kept."""
    fair = gpus % parallel == 0 and shape.kv_heads % parallel == 0
    return fair and 2 * (2 * shape.parameters // parallel) <= share * gpu.memory and kept <= (1 - share) * gpu.memory


def _made(shape: Shape, gpu: Gpu, gpus: int, t: Training, micro: int, parallel: int, offload: bool, update: dict[str, int]) -> Plan:
    answers, longest = t.problems_per_step * t.group_size, t.prompt_tokens + t.response_tokens
    tokens, engines = answers * longest, gpus // parallel
    weights = 2 * shape.parameters // parallel
    cache = int(t.scale.engine_memory * gpu.memory) - weights
    concurrent = engines * parallel * cache // (shape.kv_bytes() * longest)
    if concurrent == 0:
        raise DoesNotFit(f"a KV cache of {cache / GIB:.1f} GiB does not hold one sequence of {longest} tokens: shorten training.answer_tokens")
    rounds = ceil(answers / concurrent)
    at_once = ceil(answers / rounds / engines)
    read = weights + at_once * (t.prompt_tokens + t.response_tokens / 2) * shape.kv_bytes() / parallel  # bytes a decoding step and GPU
    compute = gpus * gpu.flops * MFU
    seconds = {
        "rollout": rounds * t.answer_tokens * read / (gpu.bandwidth * BANDWIDTH),
        "old log-probabilities": 2 * shape.parameters * tokens / compute,
        "update": (6 if t.scale.activation_checkpointing is False else 8) * shape.parameters * tokens / compute,  # forward 2 (again: 4), backward 4
    }
    if t.kl_coefficient:
        seconds["reference"] = 2 * shape.parameters * tokens / compute
    kept = 0 if offload else kept_of(update)
    rollout = {"engine's weights": weights, "KV cache": cache, "trainer's, kept": kept}
    usual = {name: Scale.model_fields[name].default for name in ("shards", "accumulation", "sequence_parallel")}
    undone = tuple(f"training.scale.{name}={value}" for name, value in usual.items() if getattr(t.scale, name) != value)
    return Plan(shape, gpu, gpus, micro, parallel, offload, update, rollout, concurrent, seconds, tokens, undone)
