"""Speed of the supervised warm-up: Ratchet's loop and verl's SFT trainer on the same data.

    python -m measurements.warm_up HOME [--steps 60] [--rounds 2]

HOME: `$RATCHET_HOME` of a finished pipeline run. Both have the same base model, batch, learning
rate, betas, weight decay, clipping and threads; verl uses its cosine schedule. Prints wall and CPU
seconds of the complete command and of a step, and the last losses. The difference of runs with N
and 2 N steps gives a step's time without the start.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from artifacts.store import Store
from verl_jobs.sft.warm_up import WarmUp

FP32 = "{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}"
LOOP = """
import json, sys
from pathlib import Path
import torch
from verl_jobs.sft.warm_up import WarmUp, warm_up
start, chats, config, folder = sys.argv[1:]
rows = json.loads(Path(chats).read_text())
losses = warm_up(Path(start), rows, WarmUp.model_validate_json(config), Path(folder))
print("train/loss:", losses[-1])
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="ratchet-warm-up-"))
    base = Store(arguments.home).require("checkpoints", "base_model").path
    chats = _chats(arguments.home)
    (scratch / "chats.json").write_text(json.dumps(chats))
    _parquet(chats, scratch / "chats.parquet")
    rows: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for number in range(arguments.rounds):
        for steps in (arguments.steps, 2 * arguments.steps):
            for kind, command in (("warm_up", _loop), ("verl.trainer.sft_trainer", _verl)):
                wall, cpu, loss = _run(
                    command(base, scratch, WarmUp(steps=steps, optimizer="adamw"), number), scratch
                )
                rows.setdefault((kind, steps), []).append((wall, cpu))
                print(
                    f"{kind} {steps} steps: {wall:.1f} s, CPU {cpu:.1f} s, last loss {loss}",
                    flush=True,
                )
    print(
        "\n| | start, s | wall s a step | CPU s a step | whole, default steps, by these "
        "figures |\n|---|---|---|---|---|"
    )
    for kind in ("warm_up", "verl.trainer.sft_trainer"):
        short, long = (
            [statistics.median(each[i] for each in rows[kind, steps]) for i in (0, 1)]
            for steps in (arguments.steps, 2 * arguments.steps)
        )
        wall, cpu = ((long[i] - short[i]) / arguments.steps for i in (0, 1))
        start = short[0] - wall * arguments.steps
        print(
            f"| {kind} | {start:.1f} | {wall:.3f} | {cpu:.3f} | "
            f"{start + wall * WarmUp().steps:.0f} s |"
        )


def _chats(home: Path) -> list[tuple[str, str]]:
    from problems.demonstrations import demonstration, demonstrations
    from problems.prompt import prompt_text

    return [
        (prompt_text(problem), demonstration(problem))
        for problem in demonstrations(Store(home).require("datasets", "clean_problems").path)
    ]


def _parquet(chats: list[tuple[str, str]], path: Path) -> None:
    import pandas as pd

    messages = [
        [{"role": "user", "content": prompt}, {"role": "assistant", "content": completion}]
        for prompt, completion in chats
    ]
    pd.DataFrame({"messages": messages}).to_parquet(path)


def _loop(base: Path, scratch: Path, config: WarmUp, number: int) -> list[str]:
    folder = scratch / f"loop-{config.steps}-{number}"
    return [
        sys.executable,
        "-c",
        LOOP,
        str(base),
        str(scratch / "chats.json"),
        config.model_dump_json(),
        str(folder),
    ]


def _verl(base: Path, scratch: Path, config: WarmUp, number: int) -> list[str]:
    return [
        str(Path(sys.executable).with_name("torchrun")),
        "--standalone",
        "--nproc_per_node=1",
        "-m",
        "verl.trainer.sft_trainer",
        f"data.train_files={scratch / 'chats.parquet'}",
        f"data.train_batch_size={config.batch}",
        f"data.micro_batch_size_per_gpu={config.batch}",
        "data.use_dynamic_bsz=False",
        "data.max_length=256",
        "data.num_workers=0",
        f"model.path={base}",
        "model.use_remove_padding=False",
        "model.enable_gradient_checkpointing=False",
        "+model.override_config.attn_implementation=sdpa",
        "engine=fsdp",
        "engine.strategy=fsdp2",
        "engine.dtype=float32",
        "engine.use_torch_compile=False",
        f"+engine.mixed_precision={FP32}",
        f"optim.lr={config.learning_rate}",
        "optim.betas=[0.9,0.98]",
        "optim.weight_decay=0.01",
        "optim.clip_grad=1.0",
        "optim.lr_warmup_steps_ratio=0.1",
        "optim.lr_scheduler_type=cosine",
        "checkpoint.save_contents=[model,optimizer,extra,hf_model]",
        f"trainer.total_training_steps={config.steps}",
        "trainer.total_epochs=100",
        "trainer.device=cpu",
        "trainer.logger=[console]",
        f"trainer.save_freq={config.steps}",
        f"trainer.seed={config.seed}",
        f"trainer.default_local_dir={scratch / f'verl-{config.steps}-{number}'}",
        f"hydra.run.dir={scratch / 'hydra'}",
    ]


def _run(command: list[str], scratch: Path) -> tuple[float, float, str]:
    """Run a command. Return wall seconds, CPU seconds, and the last loss that it printed."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "PASSIVE",
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",
        "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
        "TOKENIZERS_PARALLELISM": "false",
    }
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{process.stdout[-1000:]}{process.stderr[-3000:]}")
    losses = re.findall(r"train/loss: ?([0-9.]+)", process.stdout + process.stderr)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, losses[-1]


if __name__ == "__main__":
    main()
