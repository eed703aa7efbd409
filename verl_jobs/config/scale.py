"""Distribution of a training over processes and memory, and the matching verl overrides.

The defaults are the embedded profile's. FSDP2 has been run on CPUs; `vllm` and `sglang` are for
GPUs. Megatron, distillation and asynchronous placement are passed to verl as given and have not
been run (`Scale.unrun`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from artifacts.section import Section

Engine = Literal["hf", "vllm", "sglang"]
ACTOR, CRITIC = "actor_rollout_ref.actor", "critic"
# values of verl's trainer.v1.trainer_mode
TRAINERS = {
    "colocated": "sync",
    "colocated_async": "colocate_async",
    "separate_async": "separate_async",
}


class Megatron(Section):
    """Use Megatron-LM instead of FSDP2."""

    tensor_parallel: PositiveInt = 1
    """Processes that share each matrix."""
    pipeline_parallel: PositiveInt = 1
    """Pipeline stages that the layers are divided into."""
    context_parallel: PositiveInt = 1
    """Processes that share each sequence."""


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


class Scale(Section):
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
    """Tokens of one forward pass on a rank, filled with whole sequences. 0: 16,384 on a CPU, 16
    sequences of maximum length on GPUs.
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
    megatron: Megatron | None = None
    """Replaces FSDP2."""
    distillation: Distillation | None = None
    """A teacher in addition to the reward."""

    @property
    def unrun(self) -> str:
        """Return a sentence naming the options no training has been run with.

        Empty if there are none.
        """
        names = [
            *(["Megatron"] if self.megatron else []),
            *(["distillation"] if self.distillation else []),
            *([f"placement {self.placement}"] if self.placement != "colocated" else []),
        ]
        return f"Passed to verl, never run in our tests: {', '.join(names)}." if names else ""


def layout_error(scale: Scale, engine: Engine, ranks: int, problems: int, group: int) -> str:
    """Return why these settings do not fit together, with the numbers and the fix.

    Empty if they fit. problems: problems in a step; group: completions per problem.
    """
    completions = problems * group
    parts = (ranks, scale.updates * max(1, scale.accumulation))
    megatron = scale.megatron or Megatron()
    model_ranks = (
        megatron.tensor_parallel
        * megatron.pipeline_parallel
        * megatron.context_parallel
        * scale.sequence_parallel
    )
    gpu_only = [
        *(["sequence_parallel"] if scale.sequence_parallel > 1 else []),
        *(["tensor_parallel"] if scale.tensor_parallel > 1 else []),
        *(["offload"] if scale.offload != "none" else []),
        *(["megatron"] if scale.megatron else []),
        *(["distillation"] if scale.distillation else []),
        *(["placement"] if scale.placement != "colocated" else []),
    ]
    fsdp_only = [
        *(["shards"] if scale.shards else []),
        *([] if scale.reshard else ["reshard"]),
        *(["sequence_parallel"] if scale.sequence_parallel > 1 else []),
        *(["precision"] if scale.precision == "fp32" else []),
    ]
    if engine == "hf" and gpu_only:
        return f"scale.{gpu_only[0]} needs GPUs: set engine to vllm or sglang, or remove it"
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


def token_budget(scale: Scale, engine: Engine, longest: int) -> int:
    """Return the tokens of one forward pass on a rank, where passes are filled by tokens."""
    return scale.micro_batch_tokens or (16_384 if engine == "hf" else 16 * longest)


def recomputes(scale: Scale, engine: Engine) -> bool:
    """Whether activations are recomputed in the backward pass."""
    return (
        engine != "hf" if scale.activation_checkpointing is None else scale.activation_checkpointing
    )


def scale_overrides(
    scale: Scale, engine: Engine, ranks: int, problems: int, group: int, longest: int, critic: bool
) -> list[str]:
    """Return the verl overrides for this distribution.

    longest: maximum tokens of prompt and completion; critic: whether a critic is trained with the
    policy.
    """
    cpu = engine == "hf"
    budget = token_budget(scale, engine, longest)
    learners = [ACTOR, *([CRITIC] if critic else [])]
    share = problems * group // ranks
    lines = [
        f"trainer.nnodes={scale.nodes}",
        f"trainer.n_gpus_per_node={ranks // scale.nodes}",
        f"{ACTOR}.ppo_mini_batch_size={problems // scale.updates}",
        *_batch_sizes(scale, budget, share),
        *(_critic_batch_sizes(scale, budget, share) if critic else []),
        f"actor_rollout_ref.rollout.tensor_model_parallel_size={scale.tensor_parallel}",
        *(
            []
            if cpu
            else [f"actor_rollout_ref.rollout.gpu_memory_utilization={scale.engine_memory}"]
        ),
    ]
    recompute = recomputes(scale, engine)
    if scale.megatron:
        lines += _megatron(scale.megatron, scale.offload, recompute)
    else:
        models = ["actor_rollout_ref.model", *(["critic.model"] if critic else [])]
        lines += [f"{model}.enable_gradient_checkpointing={recompute}" for model in models]
        lines += [line for learner in learners for line in _fsdp(scale, cpu, learner)]
    return [
        *lines,
        *_placement(scale),
        *(_distillation(scale.distillation) if scale.distillation else []),
    ]


def _batch_sizes(scale: Scale, budget: int, share: int) -> list[str]:
    """Return the policy's batch sizes.

    verl's configuration reuses them for the engine and the reference model. share: completions of a
    step on one rank.
    """
    if not scale.accumulation:
        return [f"{ACTOR}.use_dynamic_bsz=True", f"{ACTOR}.ppo_max_token_len_per_gpu={budget}"]
    micro_batch = share // scale.updates // scale.accumulation
    lines = [
        f"{ACTOR}.use_dynamic_bsz=False",
        f"{ACTOR}.ppo_micro_batch_size_per_gpu={micro_batch}",
    ]
    return [
        *lines,
        *(
            f"actor_rollout_ref.{role}.log_prob_micro_batch_size_per_gpu={micro_batch}"
            for role in ("rollout", "ref")
        ),
    ]


def _critic_batch_sizes(scale: Scale, budget: int, share: int) -> list[str]:
    """Return the critic's batch sizes.

    verl's v1 trainer reads the critic's token budget from the key for inference, even for training
    passes, and all else from the engine's own section.
    """
    if not scale.accumulation:
        return [f"+{CRITIC}.ppo_infer_max_token_len_per_gpu={budget}"]
    micro_batch = share // scale.updates // scale.accumulation
    return [
        # only read by verl's check of the configuration
        f"{CRITIC}.ppo_micro_batch_size_per_gpu={micro_batch}",
        f"+{CRITIC}.fsdp.use_dynamic_bsz=False",
        f"+{CRITIC}.fsdp.micro_batch_size_per_gpu={micro_batch}",
        f"+{CRITIC}.fsdp.infer_micro_batch_size_per_gpu={micro_batch}",
    ]


def _fsdp(scale: Scale, cpu: bool, learner: str) -> list[str]:
    """Return the FSDP2 overrides of one learner.

    The reference model is sharded like the policy. verl always keeps it in host memory, whatever
    the settings.
    """
    section = f"{learner}.{'fsdp_config' if learner == ACTOR else 'fsdp'}"
    lines = [
        f"{learner}.strategy=fsdp2",
        f"{section}.param_offload={scale.offload == 'idle'}",
        f"{section}.optimizer_offload={scale.offload == 'idle'}",
        f"{section}.offload_policy={scale.offload == 'always'}",
    ]
    low = scale.precision == "bf16" or (scale.precision == "auto" and not cpu)
    for config_section in [
        section,
        *(["actor_rollout_ref.ref.fsdp_config"] if learner == ACTOR else []),
    ]:
        lines += [
            f"{config_section}.fsdp_size={scale.shards or -1}",
            f"{config_section}.reshard_after_forward={scale.reshard}",
            f"{config_section}.ulysses_sequence_parallel_size={scale.sequence_parallel}",
            (
                f"+{config_section}.mixed_precision={{param_dtype:{'bf16' if low else 'fp32'},"
                f"reduce_dtype:fp32,buffer_dtype:fp32}}"
            ),
        ]
    return lines


def _megatron(megatron: Megatron, offload: str, recompute_activations: bool) -> list[str]:
    """Return the Megatron overrides.

    again: whether activations are recomputed in the backward pass.
    """
    recompute = (
        {"granularity": "full", "method": "uniform", "num_layers": 1}
        if recompute_activations
        else {}
    )
    return [
        "model_engine=megatron",
        f"{ACTOR}.strategy=megatron",
        f"{ACTOR}.megatron.tensor_model_parallel_size={megatron.tensor_parallel}",
        f"{ACTOR}.megatron.pipeline_model_parallel_size={megatron.pipeline_parallel}",
        f"{ACTOR}.megatron.context_parallel_size={megatron.context_parallel}",
        f"{ACTOR}.megatron.param_offload={offload != 'none'}",
        f"{ACTOR}.megatron.optimizer_offload={offload != 'none'}",
        *(
            f"{ACTOR}.megatron.override_transformer_config.recompute_{key}={value}"
            for key, value in recompute.items()
        ),
    ]


def _placement(scale: Scale) -> list[str]:
    lines = [f"trainer.v1.trainer_mode={TRAINERS[scale.placement]}"]
    if scale.placement == "separate_async":
        lines += [
            "actor_rollout_ref.hybrid_engine=False",
            f"trainer.v1.separate_async.parameter_sync_step={scale.updates}",
            "actor_rollout_ref.rollout.nnodes=1",
            f"actor_rollout_ref.rollout.n_gpus_per_node={scale.engine_gpus}",
            "actor_rollout_ref.rollout.checkpoint_engine.backend=nccl",
        ]
    return lines


def _distillation(distillation: Distillation) -> list[str]:
    return [
        "distillation.enabled=True",
        "distillation.nnodes=1",
        f"distillation.n_gpus_per_node={distillation.gpus}",
        f"distillation.teacher_models.teacher_model.model_path='{distillation.teacher}'",
        (
            "distillation.teacher_models.teacher_model.inference.tensor_model_parallel_size="
            f"{distillation.gpus}"
        ),
        f"distillation.distillation_loss.loss_mode={distillation.loss}",
        f"distillation.distillation_loss.distillation_loss_coef={distillation.coefficient}",
        f"distillation.distillation_loss.use_policy_gradient={distillation.loss == 'k1'}",
    ]
