"""Supervised training of the Reviewer with verl's own SFT trainer, in a child process.

In: a start checkpoint, a parquet of review records. Out: a Hugging Face folder in fp32. On a CPU
verl trains with FSDP2 over gloo; it has not been run on GPUs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from artifacts.section import Section

FP32 = "{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}"


class ReviewerTraining(Section):
    """Supervised training of the Reviewer."""

    steps: PositiveInt = 200
    """Optimizer steps."""
    batch: PositiveInt = 16
    """Records per step."""
    learning_rate: PositiveFloat = 1e-3
    """Peak learning rate; 1e-5 is usual at 7 B."""
    tokens: PositiveInt = 512
    """Maximum tokens of a record, prompt and comment; a longer one is an error."""
    seed: NonNegativeInt = 1
    """Seed of the order of the batches."""


class ReviewerTrainingFailed(RuntimeError):
    """verl's trainer ended without a checkpoint.

    The message has its last log line and the log's path.
    """


def learn(start: Path, records: Path, folder: Path, lessons: ReviewerTraining) -> Path:
    """Train, and return `folder` with the weights and the tokenizer.

    Raises ReviewerTrainingFailed, and FileExistsError if the folder exists.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} already exists: choose another folder")
    scratch = folder.with_name(f".{folder.name}.lessons")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    log = scratch / "log"
    with log.open("wb") as file:
        process = subprocess.run(
            command(start, records, scratch, lessons),
            env=_environment(),
            cwd=scratch,
            stdout=file,
            stderr=file,
            check=False,
        )
    weights = scratch / f"global_step_{lessons.steps}" / "huggingface"
    if process.returncode or not (weights / "config.json").exists():
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] or [
            "nothing"
        ]
        raise ReviewerTrainingFailed(
            f"verl's SFT trainer exited with {process.returncode}: {last[0][:300]} (log: {log})"
        )
    weights.rename(folder)
    shutil.rmtree(scratch)
    return folder


def command(start: Path, records: Path, scratch: Path, lessons: ReviewerTraining) -> list[str]:
    """Return the command `torchrun -m verl.trainer.sft_trainer` with every override."""
    return [
        str(Path(sys.executable).with_name("torchrun")), "--standalone", "--nproc_per_node=1", "-m",
        "verl.trainer.sft_trainer", f"data.train_files='{records.absolute()}'",
        f"data.train_batch_size={lessons.batch}", f"data.micro_batch_size_per_gpu={lessons.batch}",
        "data.use_dynamic_bsz=False", f"data.max_length={lessons.tokens}", "data.num_workers=0",
        f"model.path='{start.absolute()}'", "optim.betas=[0.9,0.98]", "optim.weight_decay=0.01",
        "optim.clip_grad=1.0", "optim.lr_warmup_steps_ratio=0.1", "optim.lr_scheduler_type=cosine",
        f"optim.lr={lessons.learning_rate}",
        "checkpoint.save_contents=[model,optimizer,extra,hf_model]",
        f"trainer.total_training_steps={lessons.steps}", "trainer.total_epochs=1000",
        "trainer.logger=[console]", f"trainer.save_freq={lessons.steps}",
        f"trainer.seed={lessons.seed}", f"trainer.default_local_dir='{scratch}'",
        f"hydra.run.dir='{scratch / 'hydra'}'", *(_CUDA if _cuda() else _CPU),
    ]  # fmt: skip


_CPU = (
    "trainer.device=cpu", "model.use_remove_padding=False",
    "model.enable_gradient_checkpointing=False", "+model.override_config.attn_implementation=sdpa",
    "engine=fsdp", "engine.strategy=fsdp2", "engine.dtype=float32",
    "engine.use_torch_compile=False", f"+engine.mixed_precision={FP32}",
)  # fmt: skip
_CUDA = ("trainer.device=cuda", "engine=fsdp", "engine.strategy=fsdp2")


def _cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _environment() -> dict[str, str]:
    environment = {
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }
    if _cuda():
        return os.environ | environment
    threads = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"}
    return (
        os.environ | environment | threads | {"VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda"}
    )
