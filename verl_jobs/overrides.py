"""A `Training` as the Hydra overrides of `verl.trainer.main_ppo`: each line is something verl would otherwise do differently."""

from __future__ import annotations

import os
from pathlib import Path

from verl_jobs.algorithms import MOST_BATCHES
from verl_jobs.config import Training

FP32 = "{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}"

CPU = [
    "trainer.device=cpu",
    "data.dataloader_num_workers=0",  # the replay buffer and the dataset share the TaskRunner's process
    "trainer.v1.sampler.custom_sampler.path=pkg://verl_jobs.cpu.replay_buffer",
    "trainer.v1.sampler.custom_sampler.name=FastReplayBuffer",
    "+actor_rollout_ref.rollout.agent.agent_loop_manager_class=verl_jobs.cpu.batched.BatchedAgentLoopManager",
    "actor_rollout_ref.model.use_remove_padding=False",  # flash attention only
    "actor_rollout_ref.model.enable_gradient_checkpointing=False",
    "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
    "actor_rollout_ref.actor.use_torch_compile=False",
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile=False",
    "actor_rollout_ref.actor.fsdp_config.dtype=float32",
    f"+actor_rollout_ref.actor.fsdp_config.mixed_precision={FP32}",
    "actor_rollout_ref.ref.use_torch_compile=False",
    "actor_rollout_ref.ref.fsdp_config.use_torch_compile=False",
    "actor_rollout_ref.ref.fsdp_config.dtype=float32",
    f"+actor_rollout_ref.ref.fsdp_config.mixed_precision={FP32}",
    "actor_rollout_ref.rollout.name=hf_cpu",
    "actor_rollout_ref.rollout.dtype=float32",
    "actor_rollout_ref.rollout.free_cache_engine=False",
    "actor_rollout_ref.rollout.enforce_eager=True",
    "actor_rollout_ref.rollout.agent.num_workers=1",
    "actor_rollout_ref.rollout.max_num_seqs=512",
    "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes=64",
    "reward.num_workers=1",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
]

GPU = [
    "trainer.device=cuda",
    "actor_rollout_ref.model.use_remove_padding=True",
    "actor_rollout_ref.model.enable_gradient_checkpointing=True",
    "actor_rollout_ref.rollout.name=vllm",
    "trainer.v1.sampler.custom_sampler.path=pkg://verl_jobs.watched",
    "trainer.v1.sampler.custom_sampler.name=WatchedReplayBuffer",
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.5",
]


def overrides(training: Training, *, seed: int, model: Path, train: Path, validation: Path, folder: Path, loggers: list[str], name: str) -> list[str]:
    """All overrides of one run, each key once: the algorithm's own before those of every run."""
    t = training
    told = [
        *(CPU if t.engine == "hf" else GPU),
        *_kl(t),
        f"data.train_files='{train}'",
        f"data.val_files='{validation}'",
        f"data.seed={seed}",
        f"data.train_batch_size={t.problems_per_step}",
        f"data.max_prompt_length={t.prompt_tokens}",
        f"data.max_response_length={t.answer_tokens}",
        "data.filter_overlong_prompts=True",
        f"actor_rollout_ref.model.path='{model}'",
        "actor_rollout_ref.hybrid_engine=True",
        "actor_rollout_ref.actor.strategy=fsdp2",
        "actor_rollout_ref.actor.use_dynamic_bsz=True",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={t.problems_per_step}",
        f"actor_rollout_ref.actor.ppo_max_token_len_per_gpu={16 * (t.prompt_tokens + t.answer_tokens) if t.engine == 'vllm' else 16384}",
        "actor_rollout_ref.actor.loss_agg_mode=token-mean",
        *_importance(t),
        *t.method.overrides,
        *(_critic(t, model) if t.method.critic else []),
        *(_greedy_answers(t) if t.method.greedy else []),
        f"actor_rollout_ref.actor.optim.lr={t.learning_rate}",
        f"actor_rollout_ref.actor.optim.lr_scheduler_type={t.schedule}",
        f"actor_rollout_ref.actor.optim.lr_warmup_steps={t.warm_up_steps}",
        f"actor_rollout_ref.actor.optim.clip_grad={t.gradient_clip}",
        "actor_rollout_ref.actor.optim.betas=[0.9,0.95]",
        "actor_rollout_ref.actor.checkpoint.save_contents=[model,optimizer,extra,hf_model]",
        f"actor_rollout_ref.rollout.n={t.group_size}",
        f"+trainer.v1.sampler.sampler_kwargs={{{','.join(f'{key}:{value}' for key, value in _sampler(t).items())}}}",
        f"actor_rollout_ref.rollout.temperature={t.temperature}",
        f"+actor_rollout_ref.rollout.seed={seed}" if t.engine == "vllm" else f"actor_rollout_ref.rollout.seed={seed}",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
        "actor_rollout_ref.rollout.calculate_log_probs=True",
        "actor_rollout_ref.rollout.val_kwargs.temperature=0",
        "reward.reward_manager.source=importlib",
        "reward.reward_manager.name=SandboxRewardManager",
        "reward.reward_manager.module.path=pkg://verl_jobs.reward",
        "trainer.nnodes=1",
        f"trainer.n_gpus_per_node={t.ranks}",
        f"trainer.logger=[{','.join(['file', *loggers])}]",
        "trainer.project_name=ratchet",
        f"trainer.experiment_name={name}",
        "trainer.val_before_train=True",  # the start policy's score; on a resumed run, that of the step it resumes from
        f"trainer.test_freq={t.save_every}",
        f"trainer.save_freq={t.save_every}",
        f"trainer.total_training_steps={t.steps}",
        "trainer.total_epochs=1000",
        "trainer.resume_mode=auto",
        "trainer.max_actor_ckpt_to_keep=null",  # verl's own retention removes before the new one is whole; saving.py does it after
        f"trainer.default_local_dir='{folder / 'saves'}'",
        "trainer.checkpoint_callback_class=verl_jobs.saving.PublishCandidate",
    ]
    return list({override.split("=")[0]: override for override in told}.values())


def _sampler(t: Training) -> dict[str, object]:
    """What the replay buffer is told (verl_jobs/watched.py). verl hands `algorithm.filter_groups` to its own buffer alone."""
    told: dict[str, object] = {"answers": t.group_size, "least": t.method.least}
    if t.method.greedy:
        told["greedy"] = True
    if t.method.drops_equal_groups:
        told |= {"filter_groups_metric": "reward", "train_batch_size": t.problems_per_step, "gen_batch_size": 1, "max_inflight_gen_batches": 2}
        told["most_dropped"] = (MOST_BATCHES - 1) * t.problems_per_step
    return told


def _kl(t: Training) -> list[str]:
    if t.kl_in == "loss" or not t.kl_coefficient:
        return [
            f"actor_rollout_ref.actor.use_kl_loss={t.kl_coefficient > 0}",
            f"actor_rollout_ref.actor.kl_loss_coef={t.kl_coefficient}",
            "actor_rollout_ref.actor.kl_loss_type=low_var_kl",
        ]
    adaptive = ["algorithm.kl_ctrl.type=adaptive", f"algorithm.kl_ctrl.target_kl={t.kl_target}"] if t.kl_target else []
    return ["algorithm.use_kl_in_reward=True", f"algorithm.kl_ctrl.kl_coef={t.kl_coefficient}", *adaptive]


def _importance(t: Training) -> list[str]:
    cap = t.importance_cap
    return ["algorithm.rollout_correction.rollout_is=token", f"algorithm.rollout_correction.rollout_is_threshold={cap}"] if cap else []


def _critic(t: Training, model: Path) -> list[str]:
    """A value head on the start policy; it learns from scratch, so ten times as fast as the policy on a GPU, three times on a tiny model."""
    common = [
        f"critic.model.path='{model}'",
        "critic.strategy=fsdp2",
        f"critic.optim.lr={3 * t.learning_rate if t.engine == 'hf' else 10 * t.learning_rate}",
        f"critic.ppo_max_token_len_per_gpu={16384 if t.engine == 'hf' else 16 * (t.prompt_tokens + t.answer_tokens)}",
        "critic.checkpoint.save_contents=[model,optimizer,extra]",
    ]
    if t.engine == "vllm":
        return [*common, "critic.model.use_remove_padding=True", "critic.model.enable_gradient_checkpointing=True"]
    return [
        *common,
        "critic.model.use_remove_padding=False",
        "critic.model.enable_gradient_checkpointing=False",
        "critic.fsdp.use_torch_compile=False",
        "critic.fsdp.dtype=float32",
        f"+critic.fsdp.mixed_precision={FP32}",
    ]


def _greedy_answers(t: Training) -> list[str]:
    """On a CPU the batched loop writes them itself."""
    return [] if t.engine == "hf" else ["+actor_rollout_ref.rollout.agent.agent_loop_manager_class=verl_jobs.greedy.GreedyFirstManager"]


def environment(training: Training, folder: Path) -> dict[str, str]:
    """What every process of a run must find in its environment before it imports verl."""
    common = {
        "TRANSFER_QUEUE_ENABLE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TQ_NUM_THREADS": "1",  # its default of 8 logs a warning at every put and get on a small host
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1"),
        "WANDB_MODE": "online" if os.environ.get("WANDB_API_KEY") else "offline",
    }
    if training.engine == "vllm":
        return common
    return common | {
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",  # verl registers its FSDP engine for cuda and npu; the code is device-neutral
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray hides the logical GPUs
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin take the cores from the process that has work
    }
