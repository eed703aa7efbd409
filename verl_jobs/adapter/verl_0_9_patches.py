"""verl 0.9: functions of verl that are replaced because of a hard-coded choice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import verl.utils.distributed as verl_distributed
import verl.utils.fsdp_utils as verl_fsdp
import verl.utils.model as verl_model


def _on_gloo(init: Callable[..., Any]) -> Callable[..., Any]:
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


def gloo_alone() -> None:
    """Make verl initialize gloo only.

    verl builds "cpu:gloo,<device>:<backend>", which torch rejects if <device> is cpu: "ValueError:
    Duplicate device type cpu in backend string".
    """
    for name in ("initialize_global_process_group", "initialize_global_process_group_ray"):
        setattr(verl_distributed, name, _on_gloo(getattr(verl_distributed, name)))


def critic_attention(attention: str) -> None:
    """Load the critic with this attention; verl always uses "flash_attention_2"."""

    def load_valuehead_model(
        local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool
    ) -> Any:
        from transformers import AutoModelForTokenClassification

        return AutoModelForTokenClassification.from_pretrained(
            local_path,
            dtype=torch_dtype,
            config=model_config,
            attn_implementation=attention,
            trust_remote_code=trust_remote_code,
        )

    verl_model.load_valuehead_model = load_valuehead_model


def plain_offload() -> None:
    """Keep the reference model in plain host memory.

    verl always pins it, which needs an accelerator: "RuntimeError: Cannot access accelerator device
    when none is available".
    """
    from torch.distributed.fsdp import OffloadPolicy

    verl_fsdp.CPUOffloadPolicy = lambda pin_memory=True: OffloadPolicy()


def one_process_a_gpu() -> None:
    """Make verl's SFT trainer ask Ray for one CPU a GPU.

    It takes RayResourcePool's default of 10, for other workers that would share the GPU, and waits
    forever on a Ray with fewer.
    """
    from verl.single_controller import ray as verl_ray

    verl_ray.RayResourcePool = functools.partial(verl_ray.RayResourcePool, max_colocate_count=1)
