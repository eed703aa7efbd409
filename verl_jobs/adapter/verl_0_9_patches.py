"""verl 0.9: functions of verl that are replaced because of a hard-coded choice."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
import verl.utils.distributed as verl_distributed
import verl.utils.fsdp_utils as verl_fsdp
import verl.utils.model as verl_model

ENTROPY_WEIGHT = "entropy_weight"  # of a batch's extra information


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


def share_prompts(shared: ModuleType) -> None:
    """Compute a prompt once for all of its completions.

    shared: the module verl_jobs/cpu/shared_prompts.py. A critic needs the values of all tokens, and
    distillation their logits: they stay as they are.
    """
    from verl.utils import tensordict_utils
    from verl.workers.engine.fsdp import transformer_impl

    engine = transformer_impl.FSDPEngineWithLMHead
    critic = transformer_impl.FSDPEngineWithValueHead
    split_of_verl = transformer_impl.prepare_micro_batches
    inputs_of_verl, outputs_of_verl = engine.prepare_model_inputs, engine.prepare_model_outputs
    all_logits = ("distillation_use_topk", "calculate_sum_pi_squared")

    def prepare_micro_batches(data: Any, **options: Any) -> Any:
        """Keep a group's completions in one micro-batch, where they follow each other."""
        if "prompts" in data and data["prompts"].is_nested and "max_token_len_per_gpu" in data:
            lengths = data["input_ids"].offsets().diff().tolist()
            limit = data["max_token_len_per_gpu"]
            size = shared.group_size(data["prompts"].unbind(), lengths, limit)
            tensordict_utils.assign_non_tensor(data, force_group_size=size)
        return split_of_verl(data=data, **options)

    def prepare_model_inputs(self: Any, micro_batch: Any) -> Any:
        wants = (tensordict_utils.get(micro_batch, key, default=False) for key in all_logits)
        if isinstance(self, critic) or "prompts" not in micro_batch or any(wants):
            return inputs_of_verl(self, micro_batch)
        prompts, completions = micro_batch["prompts"].unbind(), micro_batch["responses"].unbind()
        if not shared.shares(self.model_config.hf_config, prompts, completions):
            return inputs_of_verl(self, micro_batch)
        pad = tensordict_utils.get(micro_batch, "pad_token_id", default=0)
        rows = shared.share(prompts, completions, pad)
        model_inputs = {
            "input_ids": rows.ids,
            "attention_mask": rows.mask,
            "position_ids": rows.positions,
            "logits_to_keep": torch.arange(rows.first, rows.ids.shape[1]),
        }
        return model_inputs, {"shared": rows, "prompts": prompts, "completions": completions}

    def prepare_model_outputs(
        self: Any, output: Any, output_args: Any, micro_batch: Any, logits_processor_func: Any
    ) -> Any:
        rows = output_args.get("shared")
        if rows is None:
            return outputs_of_verl(self, output, output_args, micro_batch, logits_processor_func)
        prompts, completions = output_args["prompts"], output_args["completions"]
        logits = output.logits[rows.row, rows.column]
        temperature = torch.as_tensor(micro_batch["temperature"], dtype=logits.dtype)
        if temperature.dim():  # one for each completion
            temperature = temperature.repeat_interleave(torch.tensor([*map(len, completions)]))
        if (temperature != 1).any():
            logits = logits / temperature.unsqueeze(-1)
        results = {"log_probs": shared.log_probs_of(logits, completions)}
        if tensordict_utils.get(micro_batch, "calculate_entropy", default=False):
            results["entropy"] = shared.entropies_of(logits)
        return {
            name: torch.nested.nested_tensor_from_jagged(
                *shared.full_length(each, prompts, completions)
            )
            for name, each in results.items()
        }

    transformer_impl.prepare_micro_batches = prepare_micro_batches
    engine.prepare_model_inputs = prepare_model_inputs
    engine.prepare_model_outputs = prepare_model_outputs


def one_process_a_gpu() -> None:
    """Make verl's SFT trainer ask Ray for one CPU a GPU.

    It takes RayResourcePool's default of 10, for other workers that would share the GPU, and waits
    forever on a Ray with fewer.
    """
    from verl.single_controller import ray as verl_ray

    verl_ray.RayResourcePool = functools.partial(verl_ray.RayResourcePool, max_colocate_count=1)


def take_entropy_weight() -> None:
    """Use the batch's weight of the entropy in the loss, where it has one."""
    from verl.utils import tensordict_utils
    from verl.workers.utils import losses

    loss_of_verl = losses.ppo_loss

    def ppo_loss(config: Any, model_output: Any, data: Any, dp_group: Any = None) -> Any:
        weight = tensordict_utils.get(data, key=ENTROPY_WEIGHT, default=None)
        if weight is not None:
            object.__setattr__(config, "entropy_coeff", weight)  # verl's configs are frozen
        return loss_of_verl(config, model_output, data, dp_group)

    importers = ("verl.workers.engine_workers", "verl.trainer.distillation.losses")
    for module in filter(None, [losses, *map(sys.modules.get, importers)]):
        module.ppo_loss = ppo_loss


class SaveState(NamedTuple):
    """What one rank has to save. Its tensors are the live ones, not copies."""

    module: Any  # sharded by FSDP2
    files: dict[str, Any]  # content by the first word of verl's file name: model, optim, ...
    exports: bool  # whether weights for other programs are wanted
    rank: int
    ranks: int


def replace_save(save: Callable[[SaveState, Path], None]) -> None:
    """Call a function in each rank instead of verl's save of an FSDP2 model, where
    `checkpoint.async_save` is set: verl has such saves for Megatron only.

    verl itself still writes configuration and tokenizer. The function gets verl's folder.
    """
    from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager
    from verl.utils.fsdp_utils import fsdp_version

    save_of_verl = FSDPCheckpointManager.save_checkpoint

    def save_checkpoint(self: Any, local_path: str, *args: Any, **kwargs: Any) -> None:
        if not (self.checkpoint_config or {}).get("async_save", False):
            save_of_verl(self, local_path, *args, **kwargs)
            return
        if fsdp_version(self.model) != 2:
            raise ValueError(
                "checkpoint.async_save needs FSDP2: remove `strategy` from the overrides"
            )
        contents = self.checkpoint_save_contents
        self.checkpoint_save_contents = []
        save_of_verl(self, local_path, *args, **kwargs)
        self.checkpoint_save_contents = contents
        schedule = self.lr_scheduler.state_dict() if self.lr_scheduler else None
        files = {
            "model": self.model.state_dict(),
            "optim": self.optimizer.state_dict(),
            "extra_state": {"lr_scheduler": copy.deepcopy(schedule), "rng": self.get_rng_state()},
        }
        exports = "hf_model" in contents
        save(SaveState(self.model, files, exports, self.rank, self.world_size), Path(local_path))

    FSDPCheckpointManager.save_checkpoint = save_checkpoint
