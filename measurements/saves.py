"""What a save costs: seconds that the training stops, and bytes that all processes read and write.

    python -m measurements.saves [--layers 24] [--ranks 2]

A random model of the shape of Qwen2.5-Coder-0.5B in bf16, in verl's actor with FSDP2 (rank.py). One
save is as verl 0.9.1 makes it, with an export in fp32 that is then copied, and all files hashed as
Ratchet did; the other is Ratchet's, in the background.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_file
from artifacts.integrity import files_of
from verl_jobs.config.training import Training
from verl_jobs.planner.shapes import QWEN, SHAPES
from verl_jobs.sft.tiny_model import train_tokenizer
from verl_jobs.trainer.checkpoints import seal
from verl_jobs.trainer.rank_save import WEIGHTS, collect

SHAPE = SHAPES[f"{QWEN}0.5B"]
FOREGROUND = ("actor_rollout_ref.actor.checkpoint.async_save=False",)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=SHAPE.layers)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        parameters = random_model(Path(scratch) / "model", arguments.layers)
        print(f"{parameters:,} parameters, {arguments.ranks} ranks\n")
        print("| save | training stops, s | read and written, GB | bytes a parameter |")
        print("|---|---|---|---|")
        for name, verl in (("verl's, copied and hashed", FOREGROUND), ("in the background", ())):
            save = Path(scratch) / name / "global_step_1"
            cost = rank_costs(Path(scratch) / "model", save, arguments.ranks, verl)
            began = time.perf_counter()
            after = copy_and_hash(save) if verl else complete(save, arguments.ranks)
            stops = cost["blocked_s"] + (time.perf_counter() - began if verl else 0)
            moved = cost["bytes"] + after
            print(f"| {name} | {stops:.1f} | {moved / 1e9:.1f} | {moved / parameters:.1f} |")
            shutil.rmtree(save.parent)


def random_model(folder: Path, layers: int) -> int:
    """Write the model with a small tokenizer of its own; return its number of parameters."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen2Config

    config = Qwen2Config(
        vocab_size=SHAPE.vocabulary,
        hidden_size=SHAPE.hidden,
        intermediate_size=SHAPE.intermediate,
        num_hidden_layers=layers,
        num_attention_heads=SHAPE.heads,
        num_key_value_heads=SHAPE.kv_heads,
        tie_word_embeddings=True,
    )
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    train_tokenizer(["def solve(x):\n    return x"], 512).save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


def rank_costs(model: Path, save: Path, ranks: int, verl: tuple[str, ...]) -> dict[str, float]:
    """Train a step on all ranks and save; return rank 0's seconds, and the bytes of all."""
    training = Training(
        ranks=ranks, threads=1, problems_per_step=2, group_size=2, prompt_tokens=16,
        answer_tokens=16, verl=verl,
    )  # fmt: skip
    task = {"model": str(model), "training": training.model_dump(), "save": str(save / "actor")} | {
        "prompt": 16, "answer": 16, "count": 4, "steps": 1,
    }  # fmt: skip
    command = [
        *(sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}"),
        *("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"),
        *(str(Path(__file__).with_name("rank.py")), json.dumps(task)),
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    last = next(line for line in run.stdout.splitlines() if line.startswith('{"losses"'))
    cost: dict[str, float] = json.loads(last)["save"]
    return cost


def copy_and_hash(save: Path) -> int:
    """Copy the export, hash the copy and all files; return the bytes read and written."""
    export, copy = save / "actor" / WEIGHTS, save.with_name("candidate")
    shutil.copytree(export, copy)
    for path in (*files_of(copy).values(), *files_of(save).values()):
        hash_file(path)
    return 3 * _size(export) + _size(save)


def complete(save: Path, ranks: int) -> int:
    """Take the weights out of the save and seal it; return 0: nothing is read again."""
    hashes = collect(save, ["actor"], ranks)
    (save / "actor" / WEIGHTS).replace(save.with_name("candidate"))
    seal(save, hashes)
    return 0


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in files_of(folder).values())


if __name__ == "__main__":
    main()
