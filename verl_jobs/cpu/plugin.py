"""Plugin that verl imports in every process of a run.

It registers the CPU platform and the hf_cpu rollout, and gives each training its own queue. verl
logs a failing plugin only at DEBUG and then falls back to CUDA, so this module must not import
packages that may be missing.
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
        """Make a verl function initialize gloo only.

        verl builds "cpu:gloo,<device>:<backend>", which torch rejects if <device> is cpu:
        "ValueError: Duplicate device type cpu in backend string".
        """

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
        """Load the critic with sdpa; verl always uses "flash_attention_2"."""
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
    # "RuntimeError: Cannot access accelerator device when none is available". The model is in host
    # memory anyway.
    verl_fsdp.CPUOffloadPolicy = lambda pin_memory=True: OffloadPolicy()

    def _load_replica() -> type:
        from verl_jobs.cpu.rollout import HFReplica

        return HFReplica

    base._ROLLOUT_REGISTRY[("hf_cpu", "async")] = "verl_jobs.cpu.rollout.HFRollout"
    replica.RolloutReplicaRegistry.register("hf_cpu", _load_replica)

    # seeds new weights; imported after the registrations above, which its engine uses
    from verl_jobs.cpu import seeded  # noqa: F401

# Replaces names in transfer_queue. Imported last, so that the CPU setup never depends on it.
from verl_jobs.trainer import own_queue  # noqa: F401
