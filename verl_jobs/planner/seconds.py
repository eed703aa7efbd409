"""Estimate the seconds of a step on GPUs.

The rates below come from published runs; none of them was measured by this project.
measurements/published_runs.py has the sources, docs/measurements/gpu.md the errors.
"""

from __future__ import annotations

from math import ceil

from verl_jobs.config.training import Training
from verl_jobs.planner.shapes import Gpu, ModelShape

UPDATE_S = 1.0  # of each update besides its arithmetic: optimizer, gradient norm, data
BANDWIDTH = 0.6  # share of the peak bandwidth, decoding
TOKEN_S = 0.004  # of each decoded token besides reading weights and cache: launches, sampling
HOST_BANDWIDTH = 25e9  # bytes/s between a GPU and host memory: PCIe 4 x16, less its overhead


def step_seconds(
    shape: ModelShape, gpu: Gpu, training: Training, concurrent: int
) -> dict[str, float]:
    """Return the seconds of each part of a step, with every completion at maximum length.

    concurrent: completions that the KV caches hold at once, over all GPUs.
    """
    t = training
    seconds = {"rollout": rollout_seconds(shape, gpu, t, concurrent)}
    seconds |= training_seconds(shape, t, t.ranks * gpu.flops * gpu.share)
    if t.scale.offload != "none":
        # fp32 weights and two moments, to the GPU and back
        state = 4 * shape.parameters + 8 * shape.learned(t.lora)
        seconds["offload"] = 2 * state / (t.scale.shards or t.ranks) / HOST_BANDWIDTH
    return seconds


def rollout_seconds(
    shape: ModelShape, gpu: Gpu, training: Training, concurrent: int, mean: float = 0.0
) -> float:
    """Return the seconds of the rollouts.

    Each token of the longest completion reads the weights and the caches of the completions that
    are still written; each token of any completion is a forward pass. mean: tokens of a completion;
    0: all have the maximum length.
    """
    t, parallel = training, training.scale.tensor_parallel
    mean = mean or t.response_tokens
    engines = max(1, t.ranks // parallel)
    completions = t.problems_per_step * (t.group_size + t.method.greedy)
    capacity = max(1, concurrent) * (t.prompt_tokens + t.response_tokens)
    rounds = ceil(completions * (t.prompt_tokens + mean) / capacity)
    # bytes per GPU, over the whole rollout
    weights = rounds * t.response_tokens * 2 * shape.parameters / parallel
    writing = completions * mean / engines  # summed over the tokens of the longest completion
    cache = writing * (t.prompt_tokens + mean / 2) * shape.kv_bytes() / parallel
    compute = completions * mean * 2 * shape.parameters / (t.ranks * gpu.flops * gpu.share)
    reading = (weights + cache) / (gpu.bandwidth * BANDWIDTH)
    return rounds * t.response_tokens * TOKEN_S + reading + compute


def forward_flops(shape: ModelShape, length: float) -> float:
    """Return the FLOP of a forward pass for each token of sequences of this length.

    2 for each parameter; attention 2 for each layer, query width and earlier token, twice (scores
    and sums), over half of the sequence on average.
    """
    return 2 * shape.parameters + 2 * shape.layers * shape.q_width * length


def training_seconds(shape: ModelShape, t: Training, compute: float) -> dict[str, float]:
    """Return the seconds of the compute-bound parts at `compute` FLOP/s.

    A backward pass takes twice a forward pass, and three times if activations are recomputed. A
    reference and a critic have the policy's shape; a critic evaluates every token and trains on it.
    """
    length = t.prompt_tokens + t.response_tokens
    tokens = t.problems_per_step * t.group_size * length
    forward = forward_flops(shape, length) * tokens / compute
    passes = 3 if t.scale.activation_checkpointing is False else 4
    update = passes * forward + UPDATE_S * t.scale.updates
    seconds = {"old log-probabilities": forward, "update": update}
    if t.kl_coefficient:
        seconds["reference"] = forward
    if t.method.critic:
        seconds |= {"critic's values": forward, "critic's update": update}
    return seconds
