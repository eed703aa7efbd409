"""Plugin that verl imports in every process of a run.

It registers the CPU platform and the rollouts by transformers, has FSDP models saved in the
background, lets the entropy's weight change, and gives each training its own queue. verl logs a
failing plugin only at DEBUG and then falls back to CUDA, so this module must not import packages
that may be missing. A version of verl without an adapter is refused before a training starts
(verl_jobs/planner/preflight.py).
"""

import os
from pathlib import Path
from typing import Any

from verl_jobs.adapter.versions import adapter, patches
from verl_jobs.config.engine_overrides import FLASH, SDPA, installed_attention


def _load_replica() -> type:
    from verl_jobs.cpu.rollout import HFReplica

    return HFReplica


def _seed(engine: Any) -> None:
    """Make new weights (a critic's value head, adapters) the same in each run.

    verl seeds them only with `full_determinism`, which also makes every kernel slow.
    """
    import torch

    torch.manual_seed(engine.engine_config.seed)


def _save(state: Any, folder: Path) -> None:
    from verl_jobs.trainer.rank_save import save

    save(state, folder)


if os.environ.get("VERL_PLATFORM") == "cpu":
    from verl_jobs.cpu import platform, shared_prompts  # noqa: F401  (registers PlatformCPU)

    patches().gloo_alone()
    patches().critic_attention(SDPA)
    patches().plain_offload()
    patches().share_prompts(shared_prompts)
    adapter().register_rollout("hf_cpu", "verl_jobs.cpu.rollout.HFRollout", _load_replica)
    adapter().around_build(before=_seed)  # after the registrations above, which its engine uses
else:
    adapter().register_rollout("transformers", "verl_jobs.cpu.rollout.HFRollout", _load_replica)
    if installed_attention() != FLASH:
        patches().critic_attention(SDPA)

patches().replace_save(_save)
patches().take_entropy_weight()
# Replaces names in transfer_queue. Last, so that the CPU setup never depends on it.
adapter().separate_queues()
