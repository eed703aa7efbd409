"""Overrides for the engines: a CPU with transformers, and GPUs."""

from __future__ import annotations

BATCHED = (
    "+actor_rollout_ref.rollout.agent.agent_loop_manager_class="
    "verl_jobs.cpu.batched.BatchedAgentLoopManager"
)


CPU = [
    "trainer.device=cpu",
    # the replay buffer and the dataset share the TaskRunner's process
    "data.dataloader_num_workers=0",
    "trainer.v1.sampler.custom_sampler.path=pkg://verl_jobs.cpu.replay_buffer",
    "trainer.v1.sampler.custom_sampler.name=FastReplayBuffer",
    BATCHED,
    "actor_rollout_ref.model.use_remove_padding=False",  # needs flash attention
    "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile=False",
    "actor_rollout_ref.ref.fsdp_config.use_torch_compile=False",
    "actor_rollout_ref.rollout.name=hf_cpu",
    "actor_rollout_ref.rollout.free_cache_engine=False",
    "actor_rollout_ref.rollout.agent.num_workers=1",
    "actor_rollout_ref.rollout.max_num_seqs=512",
    "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes=64",
    "reward.num_workers=1",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
]


GPU = [
    "trainer.device=cuda",
    "actor_rollout_ref.model.use_remove_padding=True",
    "trainer.v1.sampler.custom_sampler.path=pkg://verl_jobs.trainer.replay_buffer",
    "trainer.v1.sampler.custom_sampler.name=WatchedReplayBuffer",
]
