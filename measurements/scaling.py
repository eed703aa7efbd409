"""Speed and memory of a training step, by the number of ranks and by algorithm.

    python -m measurements.scaling                                  1 and 2 ranks on a CPU
    python -m measurements.scaling --ranks 1 --algorithms ppo grpo rloo remax dapo      by algorithm
    python -m measurements.scaling --engine vllm --base MODEL --ranks 1 2 4 8     the same on GPUs

Each training has the same problems and the same batch: rollouts, sandbox, update and transfer of
the weights, in a private Ray of its own. Tokens are those of prompts and completions. Efficiency is
tokens a second, divided by ranks times those of the fewest ranks of the algorithm. Memory is the
peak of all processes together (PSS) and, of a rank on a GPU, what torch allocated. On a CPU all
processes of a training are pinned to as many cores as it has ranks, with one thread each, so that
the cores stand for GPUs. Load is the machine's of the last five minutes, the training included. The
first step, which warms up, and the last, which saves, are left out. A finished training is read
again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path
from statistics import median

from pipelines.process import pss_bytes, run_processes
from problems.dataset.rl_parquet import write_verl
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.prompt import prompt_text
from rewards.composite import reward_hash
from rewards.config import RewardConfig
from verl_jobs.config.algorithms import ALGORITHMS
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, metrics

FIGURES = {
    "tokens": "perf/total_num_tokens",
    "step_s": "timing_s/step",
    "rollouts_s": "timing_s/gen",
    "update_s": "timing_s/update_actor",
    "memory_gib": "actor/perf/max_memory_allocated_gb",
}
PROMISED = 0.8  # of linear speed-up


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/benchmarks/scaling"))
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--algorithms", nargs="+", choices=list(ALGORITHMS), default=["grpo"])
    parser.add_argument("--engine", choices=["hf", "vllm", "sglang"], default="hf")
    parser.add_argument("--base", type=Path, help="a Hugging Face folder; default: a tiny model")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--problems", type=int, default=32, help="of a step")
    parser.add_argument("--tokens", type=int, default=112, help="maximum of a completion")
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        run(arguments, arguments.only[0], int(arguments.only[1]))
        return
    rows = {}
    for algorithm, ranks in product(arguments.algorithms, sorted(arguments.ranks)):
        folder = folder_of(arguments, algorithm, ranks)
        if not (folder / "machine.json").exists():
            only = ["--only", algorithm, str(ranks)]
            subprocess.run([sys.executable, "-m", __spec__.name, *sys.argv[1:], *only], check=True)
        rows[algorithm, ranks] = figures(folder)
    print(table(rows))


def folder_of(arguments: argparse.Namespace, algorithm: str, ranks: int) -> Path:
    name = f"{arguments.engine}-{arguments.base.name if arguments.base else 'tiny'}"
    size = f"{arguments.problems}x{arguments.tokens}x{arguments.steps}"
    return Path(arguments.folder, f"{name}-{size}-{algorithm}-{ranks}").absolute()


def run(arguments: argparse.Namespace, algorithm: str, ranks: int) -> None:
    """Train in this process's environment, on as many cores as ranks if it is on a CPU."""
    from resources.ray.job import train
    from resources.ray.private import Private

    if arguments.engine == "hf":
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < ranks:
            sys.exit(f"{ranks} ranks need {ranks} cores, this process may use {len(cores)}")
        os.sched_setaffinity(0, cores[:ranks])
    job = job_of(arguments, algorithm, ranks)
    ray, memory = Private(job.path / "ray", job), Memory(job.path.parent.parent)
    memory.start()
    try:
        train(job, ray)
    finally:
        memory.ended.set()
        ray.end()
    machine = {"load": os.getloadavg()[1], "all_gib": memory.gib}
    (job.path / "machine.json").write_text(json.dumps(machine))


class Memory(threading.Thread):
    """Sample the memory of a run's processes, twice a second: `gib` is the peak."""

    def __init__(self, run_folder: Path) -> None:
        super().__init__(daemon=True)
        self.run_folder, self.gib, self.ended = run_folder, 0.0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.5):
            self.gib = max(self.gib, pss_bytes(run_processes(str(self.run_folder))) / 2**30)


def job_of(arguments: argparse.Namespace, algorithm: str, ranks: int) -> TrainingJob:
    folder = folder_of(arguments, algorithm, ranks)
    folder.mkdir(parents=True, exist_ok=True)
    problems = generate(FamilyConfig(demonstrations=1, train=4 * arguments.problems, validation=8))
    for split in ("train", "validation"):
        write_verl([each for each in problems if each.split == split], folder / f"{split}.parquet")
    training = Training(
        algorithm=algorithm, engine=arguments.engine, ranks=ranks, threads=1,
        steps=arguments.steps, save_every=arguments.steps, problems_per_step=arguments.problems,
        answer_tokens=arguments.tokens,
    )  # fmt: skip
    start = arguments.base
    if start is None:
        from verl_jobs.sft.tiny_model import TinyModel, make

        texts = [text for each in problems for text in (prompt_text(each), *each.solutions)]
        start = folder / "model"
        make(TinyModel(), texts, start)
    return TrainingJob(
        folder=str(folder), run_id="scaling", start=str(start.absolute()),
        train=str(folder / "train.parquet"), validation=str(folder / "validation.parquet"),
        inputs={}, training=training, reward=RewardConfig(),
        reward_hash=reward_hash(RewardConfig()), isolation="auto", seed=1, loggers=(),
    )  # fmt: skip


def figures(folder: Path) -> dict[str, float]:
    """Return the medians over the steps of a finished training, and the machine's load."""
    steps = [row for row in metrics(folder) if FIGURES["step_s"] in row][1:-1]
    medians = {name: median(float(row[key]) for row in steps) for name, key in FIGURES.items()}
    speed = median(float(row[FIGURES["tokens"]]) / row[FIGURES["step_s"]] for row in steps)
    machine: dict[str, float] = json.loads((folder / "machine.json").read_text())
    return medians | {"speed": speed} | machine


def table(rows: dict[tuple[str, int], dict[str, float]]) -> str:
    """Return the table for docs/measurements, by algorithm and number of ranks."""
    lines = [
        "| algorithm | ranks | tokens/s | s a step | rollouts | update | GiB a rank | GiB in all | "
        "efficiency | load |",
        "|---" * 10 + "|",
    ]
    first: dict[str, tuple[int, float]] = {}
    for (algorithm, ranks), row in rows.items():
        fewest, speed = first.setdefault(algorithm, (ranks, row["speed"]))
        efficiency = row["speed"] / speed * fewest / ranks
        lines.append(
            f"| {algorithm} | {ranks} | {row['speed']:.0f} | {row['step_s']:.1f} | "
            f"{row['rollouts_s']:.1f} | {row['update_s']:.1f} | {row['memory_gib']:.2f} | "
            f"{row['all_gib']:.2f} | {100 * efficiency:.0f} % | {row['load']:.1f} |"
        )
    return "\n".join(lines) + f"\npromised: {100 * PROMISED:.0f} %"


if __name__ == "__main__":
    main()
