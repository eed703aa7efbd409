"""Translate a `Training` into verl's overrides of the policy, its KL term, and the critic."""

from __future__ import annotations

import json
from pathlib import Path

from verl_jobs.config.lora import LINEAR
from verl_jobs.config.training import Training

KL_STEPS = 10  # the KL controller's horizon in steps, 1 / K


def actor_overrides(t: Training, seed: int, model: Path) -> list[str]:
    """Return the overrides of the policy: its weights, loss, optimizer and checkpoints."""
    actor = "actor_rollout_ref.actor"
    return [
        f"actor_rollout_ref.model.path='{model}'",
        *_first_weights(t, seed),
        *_learned_part(t),
        f"{actor}.loss_agg_mode=token-mean",
        *_importance(t),
        *(f"{actor}.{key}={t.clip}" for key in ("clip_ratio", "clip_ratio_low")),
        f"{actor}.clip_ratio_high={t.clip_high or t.clip}",
        f"{actor}.entropy_coeff={t.entropy_coefficient}",
        *([f"{actor}.calculate_entropy=True"] if t.entropy_target else []),
        *t.method.overrides,
        # without it verl divides each micro-batch by the length of its longest completion
        *([f"{actor}.loss_scale_factor={t.response_tokens}"] if t.method.sums_over_tokens else []),
        *_pace(t, actor, t.learning_rate),
        *_betas(t),
        f"{actor}.optim.weight_decay={t.weight_decay}",
        f"{actor}.checkpoint.save_contents=[model,optimizer,extra,hf_model]",
        f"{actor}.checkpoint.async_save={saves_in_background(t)}",
    ]


def saves_in_background(t: Training) -> bool:
    """Whether ranks write their saves while the training continues: with FSDP2."""
    return t.scale.megatron is None


def _first_weights(t: Training, seed: int) -> list[str]:
    """Return the seed of newly initialized weights (verl_jobs/cpu/plugin.py).

    On GPUs verl reads the seed only with `full_determinism`.
    """
    engines = ["actor_rollout_ref.actor.fsdp_config", *(["critic.fsdp"] if t.method.critic else [])]
    return [f"{engine}.seed={seed}" for engine in engines] if t.engine == "hf" else []


def kl_overrides(t: Training) -> list[str]:
    """Return the overrides of the KL term.

    With a target, each step updates beta <- beta (1 + K e), with e = clip(KL / target - 1, -0.2,
    0.2) and K = 0.1 (arXiv:1909.08593, section 2.2). verl uses K = completions of a step / horizon.
    verl's default horizon of 10,000 completions would make K 0.026 at 256 completions a step, and
    different for every other batch size. A horizon of ten steps' completions gives the paper's K
    for every batch size. Beta then changes by at most 2 % a step; doubling takes 35 steps.
    """
    if t.kl_in == "loss" or not t.kl_coefficient:
        return [
            f"actor_rollout_ref.actor.use_kl_loss={t.kl_coefficient > 0}",
            f"actor_rollout_ref.actor.kl_loss_coef={t.kl_coefficient}",
            "actor_rollout_ref.actor.kl_loss_type=low_var_kl",
        ]
    horizon = KL_STEPS * t.problems_per_step * t.group_size
    controlled = (
        {"type": "adaptive", "target_kl": t.kl_target, "horizon": horizon} if t.kl_target else {}
    )
    adaptive = [f"algorithm.kl_ctrl.{key}={value}" for key, value in controlled.items()]
    return [
        "algorithm.use_kl_in_reward=True",
        f"algorithm.kl_ctrl.kl_coef={t.kl_coefficient}",
        *adaptive,
    ]


def _importance(t: Training) -> list[str]:
    cap = t.importance_cap
    return (
        [
            "algorithm.rollout_correction.rollout_is=token",
            f"algorithm.rollout_correction.rollout_is_threshold={cap}",
        ]
        if cap
        else []
    )


def _learned_part(t: Training) -> list[str]:
    """Return the overrides for LoRA with verl's own PEFT, or for frozen parameters.

    Frozen parameters: verl_jobs/trainer/freezing.py.
    """
    if t.frozen:
        return [
            "actor_rollout_ref.model.external_lib=verl_jobs.trainer.freezing",
            f"+actor_rollout_ref.model.override_config.frozen={json.dumps(t.frozen)}",
            "+actor_rollout_ref.model.override_config.model_config={}",
        ]
    if t.lora is None:
        return []
    modules = f"[{','.join(t.lora.modules)}]" if t.lora.modules else LINEAR
    lines = [f"lora_rank={t.lora.rank}", f"lora_alpha={t.lora.alpha}", f"target_modules={modules}"]
    # the engine loads its own copy of the frozen weights
    loads = t.engine in ("vllm", "sglang")
    engine_lines = ["actor_rollout_ref.rollout.load_format=safetensors"] if loads else []
    return [*(f"actor_rollout_ref.model.{line}" for line in lines), *engine_lines]


def critic_overrides(t: Training, model: Path) -> list[str]:
    """Return the overrides of the critic: a value head on the start policy.

    The head is trained from scratch, so its learning rate is ten times the policy's on a GPU and
    three times on a tiny model. It follows the policy's schedule.
    """
    cpu = t.engine == "hf"
    return [
        f"critic.model.path='{model}'",
        *_pace(t, "critic", (3 if cpu else 10) * t.learning_rate),
        "critic.checkpoint.save_contents=[model,optimizer,extra]",
        f"critic.checkpoint.async_save={saves_in_background(t)}",
        f"critic.model.use_remove_padding={not cpu}",
        *(["critic.fsdp.use_torch_compile=False"] if cpu else []),
    ]


def _pace(t: Training, learner: str, learning_rate: float) -> list[str]:
    optimizer = {
        "lr": learning_rate,
        "lr_decay_style" if t.scale.megatron else "lr_scheduler_type": t.schedule,
        "lr_warmup_steps": t.warm_up_steps,
        "clip_grad": t.gradient_clip,
    }
    return [f"{learner}.optim.{key}={value}" for key, value in optimizer.items()]


def _betas(t: Training) -> list[str]:
    """Return the policy's AdamW betas.

    verl passes `betas` to torch's AdamW; Megatron's optimizer receives only
    `override_optimizer_config`.
    """
    if t.scale.megatron:
        return [
            (
                "+actor_rollout_ref.actor.optim.override_optimizer_config={adam_beta1:0.9,"
                "adam_beta2:0.95}"
            )
        ]
    return ["actor_rollout_ref.actor.optim.betas=[0.9,0.95]"]
