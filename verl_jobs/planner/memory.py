"""Memory of each phase of a step in bytes, by explicit formulas from the model's shape.

The update is checked against torch's own memory tracker on a CPU (tests/verl_jobs/test_planner.py),
the phases on a CPU against its allocator (tests/verl_jobs/test_ranks.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from verl_jobs.config.lora import Lora
from verl_jobs.config.training import Training
from verl_jobs.planner.shapes import ModelShape

# tokens of a forward pass, and rows of an engine batch, on a CPU (scale.py, overrides.py)
CPU_TOKENS, CPU_ROWS = (
    16_384,
    512,
)
RESERVED_COLUMNS = 64  # of the engine's cache (decoding/cache.py, which imports torch)
STATE, CRITIC = ("weights", "gradients", "optimizer"), "critic"
# bytes of the head for a token and entry of the vocabulary; tokens that a fused head has at once
LOGITS, FUSED_ROWS = 6, 512


def update_bytes(
    shape: ModelShape,
    tokens: int,
    ranks: int,
    *,
    mixed: bool = True,
    checkpointing: bool = True,
    lora: Lora | None = None,
    logits: int = LOGITS,
    predicted: int | None = None,
) -> dict[str, int]:
    """Return the memory of the update on one of `ranks` GPUs, for `tokens` tokens on that GPU.

    predicted: tokens that have logits; None: all.

    Weights, gradients and Adam's two moments are fp32 and sharded: 16 bytes a parameter; with
    adapters 4, and 16 for each adapter parameter. The current layer and the next one are gathered
    in the computing type. In bfloat16 so is the gradient of the largest matrix, with its fp32 copy
    for the reduction; adapters have no such gradient.

    Activations, in numbers per token: with checkpointing, each layer's input (hidden), plus the
    larger of two peaks. One is a single layer's own 6 hidden + 3 q + 2 kv + 4 intermediate, with 3
    intermediate of gradients. The other is the head's.

    mixed: bfloat16, otherwise fp32. logits: bytes of the head for each token and entry of the
    vocabulary in bfloat16 (`logits_width`); in fp32 16 (the logits, their log-softmax, its
    gradient, theirs).
    """
    width = 2 if mixed else 4
    head = shape.vocabulary * (logits if mixed else 4 * 4)
    own = (
        6 * shape.hidden + 3 * shape.q_width + 2 * shape.kv_width + 4 * shape.intermediate
    ) * width
    inputs = shape.layers * shape.hidden * width
    heads = (tokens if predicted is None else predicted) * head
    if checkpointing:
        activations = max(
            tokens * (inputs + 3 * shape.hidden * width) + heads,
            tokens * (inputs + own + 3 * shape.intermediate * width),
        )
    else:
        activations = tokens * shape.layers * own + heads
    embedding = shape.vocabulary * shape.hidden
    layer = (shape.parameters - embedding * (1 if shape.tied else 2)) // shape.layers
    gathered = 0 if ranks == 1 and not mixed else width * (2 * layer + embedding)
    if mixed and lora is None:
        gathered += (2 + 4) * max(layer, embedding)
    if mixed and not logits:
        gathered += FUSED_ROWS * shape.vocabulary * 16
    learned = shape.learned(lora)
    return {
        "weights": 4 * (shape.parameters + (learned if lora else 0)) // ranks,
        "gradients": 4 * learned // ranks,
        "optimizer": 8 * learned // ranks,
        "gathered layers": gathered,
        "activations": activations,
    }


def logits_width(training: Training) -> int:
    """Return the head's peak in bytes for each token and entry of the vocabulary, in bfloat16.

    Of verl's own functions, measured on a CPU (tests/verl_jobs/test_planner.py): 6 without flash
    attention's cross entropy, 16 if the loss has an entropy term, and 2 more for logits that are
    divided by a temperature. A fused head never holds all logits.
    """
    if training.scale.fused_head:
        return 0
    scaled = 0 if training.temperature == 1 and not training.final_temperature else 2
    return (16 if training.entropy_coefficient else LOGITS) + scaled


def log_prob_bytes(
    shape: ModelShape,
    tokens: int,
    ranks: int,
    *,
    mixed: bool = True,
    fused: bool = False,
    predicted: int | None = None,
) -> dict[str, int]:
    """Return the memory of the old log-probabilities on one of `ranks` processes.

    For a micro-batch of `tokens` tokens. No gradients; the larger of one layer's activations (3
    hidden + 2 q + 3 intermediate) and the head's logits with copies: 4 bytes for the entropy, or on
    a CPU, where `predicted` tokens have logits, twice 4 more. fused: the head never holds all
    logits.
    """
    update = update_bytes(shape, 0, ranks, mixed=mixed)
    width = 2 if mixed else 4
    head = width + 4 if predicted is None else 12
    heads = 0 if fused else (tokens if predicted is None else predicted) * shape.vocabulary * head
    activations = max(
        tokens * (3 * shape.hidden + 2 * shape.q_width + 3 * shape.intermediate) * width,
        tokens * shape.hidden * width + heads,
    )
    return {key: update[key] for key in ("weights", "optimizer", "gathered layers")} | {
        "activations": activations
    }


def generation_bytes(
    shape: ModelShape, rows: int, prompt: int, completion: int, group: int = 1
) -> dict[str, int]:
    """Return the memory of the CPU engine in fp32, in addition to the trainer's.

    For `rows` completions at once, `group` of each prompt (decoding/batch.py). The larger of two
    peaks: every row's cache with the columns reserved behind the prompt, or, where completions are
    longer, at its maximum length, with a copy of one layer while it grows; or the prompts'
    activations in one layer with the cache so far.
    """
    cached = 2 * shape.kv_bytes()  # of a token, in fp32
    grows = completion > RESERVED_COLUMNS
    columns = prompt + RESERVED_COLUMNS + (completion if grows else 0)
    cache = int(rows * columns * cached * (1 + (1 / shape.layers if grows else 0)))
    reading = (
        rows
        // group
        * prompt
        * (cached + 4 * (3 * shape.hidden + 2 * shape.q_width + 3 * shape.intermediate))
    )
    return {
        "engine's weights": 4 * shape.parameters,
        "KV cache": cache,
        "prompts at work": max(0, reading - cache),
    }


def cpu_phases(shape: ModelShape, training: Training) -> dict[str, dict[str, int]]:
    """Return the bytes that torch allocates in each phase of a step on a CPU, all ranks together.

    Checked in tests/verl_jobs/test_ranks.py.
    """
    t, longest = training, training.prompt_tokens + training.response_tokens
    rank_completions = t.problems_per_step * t.group_size // t.ranks
    budget = t.scale.micro_batch_tokens or CPU_TOKENS
    if t.scale.accumulation:
        budget = rank_completions // t.scale.updates // t.scale.accumulation * longest
    tokens, learned = (
        min(budget, rank_completions * longest),
        min(budget, rank_completions // t.scale.updates * longest),
    )
    group, completion = t.group_size, t.response_tokens
    # A prompt is computed once for a group, and only completions have logits.
    once = (t.prompt_tokens + group * completion) / (group * longest)
    predicted = completion / longest
    checkpointing = bool(t.scale.activation_checkpointing)
    resident = update_bytes(shape, 0, t.ranks, mixed=False, lora=t.lora)
    resident_parts = {name: resident[name] for name in ("weights", "optimizer")}
    phases = {
        "writes": resident_parts
        | generation_bytes(
            shape, min(rank_completions, CPU_ROWS), t.prompt_tokens, completion, group
        ),
        "old log-probabilities": log_prob_bytes(
            shape, int(tokens * once), t.ranks, mixed=False, predicted=int(tokens * predicted)
        )
        | resident_parts,
        "update": update_bytes(
            shape,
            int(learned * once),
            t.ranks,
            mixed=False,
            checkpointing=checkpointing,
            lora=t.lora,
            predicted=int(learned * predicted),
        ),
    }
    other_models = (4 * shape.parameters if t.kl_coefficient and not t.lora else 0) + critic_bytes(
        shape, t
    )
    for phase in phases.values():
        phase |= {"reference, critic": other_models // t.ranks} if other_models else {}
    return {
        name: {key: t.ranks * size for key, size in phase.items()} for name, phase in phases.items()
    }


def critic_bytes(shape: ModelShape, training: Training) -> int:
    """Return the bytes of a critic of the policy's shape, weights and moments, over all ranks.

    A reference model takes none on GPUs: verl keeps it in host memory.
    """
    return 12 * shape.parameters if training.method.critic else 0


def resident_bytes(update: Mapping[str, int]) -> int:
    """Return the part of the update's memory that stays allocated between updates."""
    return sum(update.get(name, 0) for name in (*STATE, CRITIC))
