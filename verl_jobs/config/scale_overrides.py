"""Translate a `Scale` into the matching verl overrides."""

from __future__ import annotations

from verl_jobs.config.scale import (
    Distillation,
    Engine,
    Megatron,
    ScaleSettings,
    recomputes,
    token_budget,
)

ACTOR, CRITIC = "actor_rollout_ref.actor", "critic"
# values of verl's trainer.v1.trainer_mode
TRAINERS = {
    "colocated": "sync",
    "colocated_async": "colocate_async",
    "separate_async": "separate_async",
}


def scale_overrides(
    scale: ScaleSettings,
    engine: Engine,
    *,
    ranks: int,
    problems: int,
    group: int,
    longest: int,
    critic: bool,
) -> list[str]:
    """Return the verl overrides for this distribution.

    longest: maximum tokens of prompt and completion; critic: whether a critic is trained with the
    policy.
    """
    cpu = engine == "hf"
    budget = token_budget(scale, longest)
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
    lines += ["actor_rollout_ref.model.use_fused_kernels=True"] if scale.fused_head else []
    recompute = recomputes(scale, engine)
    if scale.megatron:
        lines += _megatron(scale.megatron, scale.offload, recompute)
    else:
        models = ["actor_rollout_ref.model", *(["critic.model"] if critic else [])]
        lines += [f"{model}.enable_gradient_checkpointing={recompute}" for model in models]
        lines += [line for learner in learners for line in _fsdp(scale, cpu, learner)]
    return [
        *lines,
        *_placement(scale, cpu),
        *(_distillation(scale.distillation) if scale.distillation else []),
    ]


def _batch_sizes(scale: ScaleSettings, budget: int, share: int) -> list[str]:
    """Return the policy's batch sizes.

    verl's configuration reuses them for the engine and the reference model. share: completions of a
    step on one rank.
    """
    if not scale.accumulation:
        roles = ("rollout", "ref") if scale.log_prob_tokens else ()
        key = "log_prob_max_token_len_per_gpu"
        return [
            f"{ACTOR}.use_dynamic_bsz=True",
            f"{ACTOR}.ppo_max_token_len_per_gpu={budget}",
            *(f"actor_rollout_ref.{role}.{key}={scale.log_prob_tokens}" for role in roles),
        ]
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


def _critic_batch_sizes(scale: ScaleSettings, budget: int, share: int) -> list[str]:
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


def _fsdp(scale: ScaleSettings, cpu: bool, learner: str) -> list[str]:
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
        f"{ACTOR}.megatron.param_offload={offload != 'none'}",
        f"{ACTOR}.megatron.optimizer_offload={offload != 'none'}",
        *(
            f"{ACTOR}.megatron.override_transformer_config.recompute_{key}={value}"
            for key, value in recompute.items()
        ),
    ]


def _placement(scale: ScaleSettings, cpu: bool) -> list[str]:
    kind = "" if scale.placement == "colocated" else "Async"
    lines = [
        f"trainer.v1.trainer_mode={TRAINERS[scale.placement]}",
        f"trainer.v1.sampler.custom_sampler.name={'Fast' if cpu else 'Watched'}{kind}ReplayBuffer",
    ]
    if scale.placement != "colocated":
        lines.append(f"trainer.v1.sampler.max_off_policy_threshold={scale.weight_versions}")
    if scale.placement == "separate_async":
        lines += [
            "actor_rollout_ref.hybrid_engine=False",
            f"trainer.v1.separate_async.parameter_sync_step={scale.updates}",
            "actor_rollout_ref.rollout.nnodes=1",
            f"actor_rollout_ref.rollout.n_gpus_per_node={scale.engine_gpus}",
            f"actor_rollout_ref.rollout.checkpoint_engine.backend={'tcp' if cpu else 'nccl'}",
        ]
        if cpu:
            module = "actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module"
            lines.append(f"{module}=verl_jobs.cpu.weights")
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
