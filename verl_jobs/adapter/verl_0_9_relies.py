"""What the adapter for verl 0.9 relies on in verl's source (verl_jobs/adapter/conformance.py)."""

from __future__ import annotations

V1 = "trainer/ppo/v1"
# file:function of verl -> the parameters that ours has or passes
FUNCTIONS = {
    "reward": {
        "experimental/reward_loop/reward_manager/base.py:RewardManagerBase.__init__": (
            "config", "tokenizer", "compute_score",
        ),
        "experimental/reward_loop/reward_manager/base.py:RewardManagerBase.run_single": ("data",),
        "trainer/ppo/reward.py:load_reward_manager": ("config", "tokenizer"),
    },
    "batch": {
        "utils/tensordict_utils.py:list_of_dict_to_tensordict": ("list_of_dicts",),
        f"{V1}/agent_loop_tq.py:AgentLoopWorkerTQ._agent_loop_postprocess": (),
        "experimental/agent_loop/agent_loop.py:AgentLoopOutput.as_dict": (),
        "utils/dataset/rl_dataset.py:RLHFDataset.__init__": ("data_files", "tokenizer", "config"),
    },
    "buffer": {
        f"{V1}/replay_buffer.py:ReplayBuffer.__init__": (
            "trainer_mode", "trainer_config", "max_off_policy_threshold",
            "max_off_policy_strategy", "sampler_kwargs", "poll_interval", "refill_fn",
            "filter_groups_metric", "train_batch_size", "gen_batch_size",
            "max_inflight_gen_batches",
        ),
        f"{V1}/replay_buffer.py:ReplayBuffer.sample": (
            "global_steps", "partition_id", "batch_size",
        ),
        f"{V1}/replay_buffer.py:ReplayBufferAsync.sample": (
            "global_steps", "partition_id", "batch_size",
        ),
        f"{V1}/replay_buffer.py:ReplayBuffer._dapo_filtered_keys": ("partition_id",),
        f"{V1}/replay_buffer.py:ReplayBuffer._evict_terminal_groups": (
            "global_steps", "partition_id", "eviction_reasons",
        ),
        f"{V1}/replay_buffer.py:ReplayBuffer._clear_groups": ("partition_id", "uids"),
        f"{V1}/replay_buffer.py:ReplayBuffer._select_prompt_uids": (
            "partition_id", "sampleable_keys", "batch_size",
        ),
        f"{V1}/replay_buffer.py:ReplayBuffer._materialize_batch": (
            "partition_id", "selected_prompt_uids", "partition_snapshot",
        ),
    },
    "saves": {
        "trainer/ppo/checkpoint_callback.py:CheckpointCallback.on_save": (
            "trainer", "global_step", "checkpoint_dir",
        ),
        f"{V1}/trainer_base.py:PPOTrainer._save_checkpoint": (),
        "workers/engine/fsdp/transformer_impl.py:FSDPEngine._build_module": (),
        "utils/checkpoint/fsdp_checkpoint_manager.py:FSDPCheckpointManager.save_checkpoint": (
            "local_path",
        ),
        "utils/fsdp_utils.py:fsdp_version": ("model",),
    },
    "agent loop": {
        f"{V1}/agent_loop_tq.py:AgentLoopWorkerTQ._run_prompt": (
            "prompt", "sampling_params", "trajectory", "trace",
        ),
        "experimental/agent_loop/agent_loop.py:AgentLoopWorker._run_agent_loop": (
            "sampling_params", "trajectory", "agent_name",
        ),
        f"{V1}/agent_loop_tq.py:apply_greedy_sampling_params": ("params",),
        "experimental/agent_loop/agent_loop.py:AgentLoopBase.run": ("sampling_params",),
    },
    "advantages": {
        "trainer/ppo/core_algos.py:register_adv_est": ("name_or_enum",),
        "trainer/ppo/core_algos.py:register_policy_loss": ("name",),
        "trainer/ppo/core_algos.py:compute_remax_outcome_advantage": (
            "token_level_rewards", "reward_baselines", "response_mask",
        ),
    },
    "entropy": {
        f"{V1}/trainer_base.py:PPOTrainer._update_actor": ("batch", "metrics"),
        "workers/utils/losses.py:ppo_loss": ("config", "model_output", "data", "dp_group"),
    },
    "CPU": {
        "utils/distributed.py:initialize_global_process_group_ray": (),
        "utils/distributed.py:initialize_global_process_group": (),
        "utils/model.py:load_valuehead_model": (
            "local_path", "torch_dtype", "model_config", "trust_remote_code",
        ),
        "workers/rollout/replica.py:RolloutReplicaRegistry.register": ("name", "loader"),
        "workers/rollout/replica.py:RolloutReplica.launch_servers": (),
        "workers/rollout/base.py:BaseRollout.update_weights": ("weights",),
        "plugin/platform/platform_manager.py:PlatformRegistry.register": ("platform",),
        "checkpoint_engine/base.py:CheckpointEngineRegistry.register": ("backend",),
        "checkpoint_engine/base.py:CheckpointEngine.build_topology": (
            "actor_wg_world_size", "rollout_world_size", "metadata",
        ),
        "checkpoint_engine/base.py:CheckpointEngine.send_weights": ("weights", "global_steps"),
        "checkpoint_engine/base.py:CheckpointEngine.receive_weights": ("global_steps",),
        "workers/rollout/utils.py:ensure_async_iterator": (),
    },
}  # fmt: skip
# names that the adapter replaces or reads, and texts on which its hooks depend
TEXTS = {
    # which trainer runs: that of trainer/ppo/v1
    "trainer/main_ppo.py": ["get_trainer_cls"],
    "utils/fsdp_utils.py": ["CPUOffloadPolicy"],
    "utils/checkpoint/checkpoint_manager.py": ["self.checkpoint_save_contents", "get_rng_state"],
    "trainer/config/config.py": ["async_save"],
    "workers/rollout/base.py": ["_ROLLOUT_REGISTRY"],
    "trainer/ppo/core_algos.py": ["POLICY_LOSS_REGISTRY", "ADV_ESTIMATOR_REGISTRY"],
    f"{V1}/trainer_base.py": ["uuid"],
    # the maximum length of a request (verl_jobs/trainer/greedy.py)
    "workers/rollout/vllm_rollout/vllm_async_server.py": ['"max_tokens" in sampling_params'],
    "workers/rollout/sglang_rollout/async_sglang_server.py": ['"max_tokens" in sampling_params'],
    "workers/rollout/llm_server.py": ['"max_tokens" in sampling_params'],
}
