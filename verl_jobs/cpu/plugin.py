"""Registers the CPU platform and the hf_cpu rollout, and gives each training a queue of its own; imported by verl itself in every process.

verl logs a failing plugin at DEBUG only and then falls back to CUDA, so keep this module free of
imports that may be missing.
"""

import os

if os.environ.get("VERL_PLATFORM") == "cpu":
    import functools
    from collections.abc import Callable
    from typing import Any

    import verl.utils.distributed as verl_distributed
    import verl.utils.fsdp_utils as verl_fsdp
    import verl.utils.model as verl_model
    from torch.distributed.fsdp import OffloadPolicy
    from verl.workers.rollout import base, replica

    from verl_jobs.cpu import platform  # noqa: F401  (registers PlatformCPU)

    def _on_gloo(init: Callable[..., Any]) -> Callable[..., Any]:
        """verl builds "cpu:gloo,<device>:<backend>", which torch refuses when <device> is cpu:
        ValueError: Duplicate device type cpu in backend string."""

        @functools.wraps(init)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            import torch.distributed as dist

            original = dist.init_process_group

            def init_process_group(*a: Any, **kw: Any) -> Any:
                return original(*a, **(kw | {"backend": "cpu:gloo"}))

            dist.init_process_group = init_process_group
            try:
                return init(*args, **kwargs)
            finally:
                dist.init_process_group = original

        return wrapped

    for _name in ("initialize_global_process_group", "initialize_global_process_group_ray"):
        setattr(verl_distributed, _name, _on_gloo(getattr(verl_distributed, _name)))

    def _load_valuehead_model(
        local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool
    ) -> Any:
        """verl loads the critic with attn_implementation="flash_attention_2", whatever the config says."""
        from transformers import AutoModelForTokenClassification

        return AutoModelForTokenClassification.from_pretrained(
            local_path,
            dtype=torch_dtype,
            config=model_config,
            attn_implementation="sdpa",
            trust_remote_code=trust_remote_code,
        )

    verl_model.load_valuehead_model = _load_valuehead_model

    # verl always offloads the reference model to pinned host memory, which needs an accelerator:
    # RuntimeError: Cannot access accelerator device when none is available. It is in host memory anyway.
    verl_fsdp.CPUOffloadPolicy = lambda pin_memory=True: OffloadPolicy()

    def _load_replica() -> type:
        from verl_jobs.cpu.rollout import HFReplica

        return HFReplica

    base._ROLLOUT_REGISTRY[("hf_cpu", "async")] = "verl_jobs.cpu.rollout.HFRollout"
    replica.RolloutReplicaRegistry.register("hf_cpu", _load_replica)

    from verl_jobs.cpu import seeded  # noqa: F401  (seeds what is made anew; after the names above, which its engine takes over)

from verl_jobs.trainer import own_queue  # noqa: F401  (replaces names in transfer_queue; last, so that the CPU never hangs on it)
