"""Translate a warm-up into Hydra overrides of `verl.trainer.sft_trainer_ray`.

The layout is the training's: ranks, nodes, sharding, precision, tokens of a forward pass.
"""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path

from verl_jobs.config.engine_overrides import SDPA, installed_attention
from verl_jobs.config.lora import LINEAR
from verl_jobs.config.scale import recomputes, token_budget
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.sft.warm_up import WarmUp

SAVES = 4  # of the state in one warm-up, the last one included


def sft_overrides(job: TrainingJob, config: WarmUp, records: Path, rows: int) -> list[str]:
    """Return all overrides. records: parquet with a column `messages`, `rows` of them.

    Raises ValueError for fewer rows than ranks, and for an optimizer that verl does not have.
    """
    t, ranks = job.training, job.training.ranks
    if config.optimizer != "adamw":
        raise ValueError(f"warm_up.optimizer: verl's SFT trainer has no {config.optimizer}: adamw")
    if rows < ranks:
        raise ValueError(f"{rows} demonstrations for {ranks} ranks: add some, or lower ranks")
    cpu, longest = t.engine == "hf", t.prompt_tokens + t.response_tokens
    return [
        f"data.train_files='{records}'",
        f"data.train_batch_size={min(config.batch, rows) // ranks * ranks or ranks}",
        "data.use_dynamic_bsz=True",
        f"data.max_token_len_per_gpu={token_budget(t.scale, longest)}",
        f"data.max_length={longest}",
        f"model.path='{job.start}'",
        f"model.use_remove_padding={not cpu}",
        f"model.enable_gradient_checkpointing={recomputes(t.scale, t.engine)}",
        f"+model.override_config.attn_implementation={SDPA if cpu else installed_attention()}",
        *_learned_part(config),
        *_engine(t, config.seed),
        f"optim.lr={config.learning_rate}",
        "optim.betas=[0.9,0.98]",
        "optim.weight_decay=0.01",
        "optim.clip_grad=1.0",
        f"optim.lr_scheduler_type={'cosine' if config.schedule == 'one_cycle' else 'constant'}",
        f"optim.lr_warmup_steps_ratio={0.1 if config.schedule == 'one_cycle' else 0.0}",
        "checkpoint.save_contents=[model,optimizer,extra,hf_model]",
        f"trainer.total_training_steps={config.steps}",
        "trainer.total_epochs=1000000",
        f"trainer.save_freq={ceil(config.steps / SAVES)}",
        "trainer.max_ckpt_to_keep=2",  # the newer one may be half written
        "trainer.resume_mode=auto",
        "trainer.logger=[file]",
        "trainer.project_name=ratchet",
        "trainer.experiment_name=warm_up",
        f"trainer.seed={config.seed}",
        f"trainer.nnodes={t.scale.nodes}",
        f"trainer.n_gpus_per_node={ranks // t.scale.nodes}",
        f"trainer.device={'cpu' if cpu else 'cuda'}",
        f"trainer.default_local_dir='{job.path / 'saves'}'",
    ]


def _learned_part(config: WarmUp) -> list[str]:
    if config.frozen:
        return [
            "model.external_lib=verl_jobs.trainer.freezing",
            f"+model.override_config.frozen={json.dumps(config.frozen)}",
            "+model.override_config.model_config={}",
        ]
    if config.lora is None:
        return []
    modules = f"[{','.join(config.lora.modules)}]" if config.lora.modules else LINEAR
    return [
        f"model.lora_rank={config.lora.rank}",
        f"model.lora_alpha={config.lora.alpha}",
        f"model.target_modules={modules}",
    ]


def _engine(t: Training, seed: int) -> list[str]:
    scale, cpu = t.scale, t.engine == "hf"
    low = scale.precision == "bf16" or (scale.precision == "auto" and not cpu)
    precision = "bf16" if low else "fp32"
    return [
        "engine=fsdp",
        "engine.strategy=fsdp2",
        f"engine.seed={seed}",
        f"engine.use_torch_compile={not cpu}",
        f"engine.fsdp_size={scale.shards or -1}",
        f"engine.reshard_after_forward={scale.reshard}",
        f"engine.ulysses_sequence_parallel_size={scale.sequence_parallel}",
        f"engine.offload_policy={scale.offload == 'always'}",
        f"+engine.mixed_precision={{param_dtype:{precision},reduce_dtype:fp32,buffer_dtype:fp32}}",
    ]
