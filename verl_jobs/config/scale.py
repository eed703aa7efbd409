"""Distribution of a training over processes and memory.

The defaults are the embedded profile's. FSDP2 has been run on CPUs; `vllm` and `sglang` are for
GPUs. Megatron, distillation and asynchronous placement are passed to verl as given and have not
been run (`Scale.unrun`).
"""

from __future__ import annotations

from math import ceil
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from artifacts.section import Section

Engine = Literal["hf", "vllm", "sglang", "transformers"]
BUDGET = 16_384  # tokens of a forward pass, verl's default


class Megatron(Section):
    """Use Megatron-LM instead of FSDP2."""

    tensor_parallel: PositiveInt = 1
    """Processes that share each matrix."""
    pipeline_parallel: PositiveInt = 1
    """Pipeline stages that the layers are divided into."""


class Distillation(Section):
    """On-policy distillation: a teacher scores the policy's completions (arXiv:2306.13649)."""

    teacher: str
    """Hub id or folder of the teacher."""
    gpus: PositiveInt = 1
    """GPUs reserved for the teacher."""
    loss: Literal["k1", "k2", "k3", "forward_kl_topk"] = "k3"
    """verl's name of the divergence."""
    coefficient: PositiveFloat = 1.0
    """Weight of the distillation loss relative to the reward's loss."""


class ScaleSettings(Section):
    """Sharding, memory and placement of one training."""

    nodes: PositiveInt = 1
    """Machines that the ranks are spread over evenly."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Precision of the policy's computation; weights, gradients and moments stay fp32. auto: fp32
    on a CPU, bf16 on GPUs.
    """
    shards: NonNegativeInt = 0
    """Ranks that share one copy of the weights; the other ranks hold further copies. 0: all ranks
    share one copy.
    """
    reshard: bool = True
    """Whether gathered weights are freed after the forward pass and gathered again for the backward
    pass.
    """
    offload: Literal["none", "idle", "always"] = "none"
    """When weights, gradients and moments are in host memory. `none`: never; `idle`: while the
    engine generates; `always`: except for the layer being computed.
    """
    activation_checkpointing: bool | None = None
    """Whether activations are recomputed in the backward pass. None: on GPUs."""
    micro_batch_tokens: NonNegativeInt = 0
    """Tokens of one forward pass on a rank, filled with whole sequences. Ranks that share sequences
    hold together `sequence_parallel` times as many. 0: 16,384, or a longest sequence if that is
    more.
    """
    log_prob_tokens: NonNegativeInt = 0
    """Tokens of a forward pass without gradients, for the old and the reference log-probabilities;
    0: as `micro_batch_tokens`.
    """
    fused_head: bool = False
    """Whether log-probabilities are computed from the last hidden states in blocks of tokens
    (verl's fused kernels), instead of from the logits of all tokens at once; GPUs only.
    """
    accumulation: NonNegativeInt = 0
    """Forward passes per update, each with the same number of completions; 0: as many as
    `micro_batch_tokens` requires.
    """
    updates: PositiveInt = 1
    """Optimizer updates that a step's batch is divided into."""
    sequence_parallel: PositiveInt = 1
    """Ranks that share each sequence (Ulysses, arXiv:2309.14509); GPUs only."""
    tensor_parallel: PositiveInt = 1
    """GPUs that one engine is spread over."""
    engine_memory: float = Field(0.5, gt=0, lt=1)
    """Share of a GPU's memory for the engine: its weights and its KV cache."""
    placement: Literal["colocated", "colocated_async", "separate_async"] = "colocated"
    """`colocated`: trainer and engine take turns on the same GPUs. `colocated_async`: the same, and
    completions may continue into the next step. `separate_async`: on separate GPUs, at the same
    time.
    """
    engine_gpus: NonNegativeInt = 0
    """GPUs reserved for the engine, with `separate_async`."""
    weight_versions: PositiveInt = 8
    """Weight versions that a completion may span where it is not `colocated`, its own included; a
    group of older ones is dropped and replaced.
    """
    megatron: Megatron | None = None
    """Replaces FSDP2."""
    distillation: Distillation | None = None
    """A teacher in addition to the reward."""

    def unrun(self, engine: Engine) -> str:
        """Return a sentence naming the options no training has been run with.

        Empty if there are none.
        """
        run = ("colocated", "separate_async") if engine == "hf" else ("colocated",)
        names = [
            *(["Megatron"] if self.megatron else []),
            *(["distillation"] if self.distillation else []),
            *([f"placement {self.placement}"] if self.placement not in run else []),
        ]
        return f"Passed to verl, never run in our tests: {', '.join(names)}." if names else ""


def layout_error(
    scale: ScaleSettings, engine: Engine, ranks: int, problems: int, group: int
) -> str:
    """Return why these settings do not fit together, with the numbers and the fix.

    Empty if they fit. problems: problems in a step; group: completions per problem.
    """
    completions = problems * group
    parts = (ranks, scale.updates * max(1, scale.accumulation))
    megatron = scale.megatron or Megatron()
    model_ranks = megatron.tensor_parallel * megatron.pipeline_parallel * scale.sequence_parallel
    gpu_only = [
        *(["sequence_parallel"] if scale.sequence_parallel > 1 else []),
        *(["tensor_parallel"] if scale.tensor_parallel > 1 else []),
        *(["offload"] if scale.offload != "none" else []),
        *(["fused_head"] if scale.fused_head else []),
        *(["megatron"] if scale.megatron else []),
        *(["distillation"] if scale.distillation else []),
        *(["placement"] if scale.placement == "colocated_async" else []),
    ]
    fsdp_only = [
        *(["shards"] if scale.shards else []),
        *([] if scale.reshard else ["reshard"]),
        *(["sequence_parallel"] if scale.sequence_parallel > 1 else []),
        *(["fused_head"] if scale.fused_head else []),
        *(["precision"] if scale.precision == "fp32" else []),
    ]
    if engine == "hf" and gpu_only:
        return f"scale.{gpu_only[0]} needs GPUs: set engine to vllm or sglang, or remove it"
    if engine == "transformers" and scale.tensor_parallel > 1:
        return "the engine transformers has one GPU: set scale.tensor_parallel to 1, or use vllm"
    if scale.megatron and fsdp_only:
        return f"scale.{fsdp_only[0]} needs FSDP2: remove it, or scale.megatron"
    if ranks % scale.nodes:
        return f"{ranks} ranks cannot be spread evenly over {scale.nodes} nodes: use a multiple"
    if completions % ranks:
        return (
            f"{problems} problems x {group} completions do not divide among {ranks} ranks: use a "
            "multiple"
        )
    if problems % scale.updates:
        return f"{problems} problems do not divide into {scale.updates} updates: use a divisor"
    if completions % (parts[0] * parts[1]):
        return (
            f"{completions} completions do not divide among {ranks} ranks into {parts[1]} forward "
            "passes each: use divisors"
        )
    if scale.shards and ranks % scale.shards:
        return f"{ranks} ranks do not divide into groups of {scale.shards} shards: use a divisor"
    if ranks % scale.tensor_parallel or ranks % model_ranks:
        return (
            f"{ranks} ranks do not divide into groups of "
            f"{scale.tensor_parallel if ranks % scale.tensor_parallel else model_ranks}: use a "
            "divisor"
        )
    if (scale.placement == "separate_async") != bool(scale.engine_gpus):
        return "placement: separate_async and engine_gpus go together: set both or neither"
    return ""


def token_budget(scale: ScaleSettings, longest: int) -> int:
    """Return the tokens of one forward pass on a rank, where passes are filled by tokens."""
    return scale.micro_batch_tokens or max(BUDGET, ceil(longest / scale.sequence_parallel))


def recomputes(scale: ScaleSettings, engine: Engine) -> bool:
    """Whether activations are recomputed in the backward pass."""
    return (
        engine != "hf" if scale.activation_checkpointing is None else scale.activation_checkpointing
    )
