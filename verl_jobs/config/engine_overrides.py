"""Overrides for the engines: a CPU with transformers, and GPUs."""

from __future__ import annotations

import importlib.metadata
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_jobs.config.training import Training

STORAGE_UNITS = 8  # actors of TransferQueue that hold the rollouts, on GPUs; verl's default
AGENT_WORKERS = 8  # processes of verl's agent loops on GPUs, over all nodes; verl's default

BATCHED = (
    "+actor_rollout_ref.rollout.agent.agent_loop_manager_class="
    "verl_jobs.cpu.batched.BatchedAgentLoopManager"
)


CPU = [
    "trainer.device=cpu",
    # the replay buffer and the dataset share the TaskRunner's process
    "data.dataloader_num_workers=0",
    "trainer.v1.sampler.custom_sampler.path=pkg://verl_jobs.cpu.replay_buffer",
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
]

FLASH, SDPA = "flash_attention_2", "sdpa"


def installed_attention() -> str:
    """Return transformers' name of the attention that this environment has.

    verl's default is flash attention, an ImportError without the package flash-attn. With torch's
    own, the sequences of a forward pass stay packed: transformers masks them from each other by
    their positions (tests/verl_jobs/test_attention.py). The package is found by its name:
    flash-attn-4, which SGLang requires, has the same module without flash_attention_2.
    """
    return FLASH if any(importlib.metadata.distributions(name="flash-attn")) else SDPA


def check_attention(training: Training) -> None:
    """Raise ValueError if the training needs flash attention and the package is not installed."""
    parallel = training.scale.sequence_parallel
    if training.engine != "hf" and parallel > 1 and installed_attention() != FLASH:
        raise ValueError(
            f"training.scale.sequence_parallel={parallel} needs flash-attn, which is not "
            "installed here: verl splits sequences inside its flash attention. Install it, or set "
            "1"
        )


def gpu_workers(nodes: int) -> list[str]:
    """Return the numbers of processes for agent loops, rewards, and rollouts in transit.

    verl spreads both over the nodes. One process for rewards a node has the node's whole sandbox;
    verl's default of 8 would start the sandbox's workers eight times.
    """
    return [
        f"actor_rollout_ref.rollout.agent.num_workers={max(AGENT_WORKERS, nodes)}",
        f"reward.num_workers={nodes}",
        f"transfer_queue.backend.SimpleStorage.num_data_storage_units={STORAGE_UNITS}",
    ]


def scoring_processes(training: Training) -> int:
    """Return how many processes of a node score completions in a sandbox."""
    if training.engine == "hf" or not training.agents.on:
        return 1
    return ceil(max(AGENT_WORKERS, training.scale.nodes) / training.scale.nodes)
