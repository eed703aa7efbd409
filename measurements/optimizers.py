"""AdamW against Muon in the warm-up: what a model from scratch has learned after the same steps.

    python -m measurements.optimizers HOME [--steps 600 1200] [--tasks 800]

HOME: one with a finished `make demo`: its base model and its demonstrations' problems. The models
are taught the verified solutions, not the fallible demonstrations, so what they solve shows what
they have learned. Each is scored greedily on held-out tasks that no gate uses.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Literal

from artifacts.store import Store
from evaluation.benchmarks.embedded import answering, heldout
from evaluation.evaluate import evaluate
from evaluation.statistics.hypothesis_tests import wilson
from measurements.nights import FIRST
from problems.demonstrations import demonstrations
from problems.embedded.heldout import heldout_tasks
from problems.prompt import prompt_text
from resources.config.load import load_profile
from sandbox.sandbox import Sandbox
from verl_jobs.sft.warm_up import WarmUp, warm_up

PROFILE = load_profile("embedded")
OPTIMIZERS: tuple[Literal["adamw", "muon"], ...] = ("adamw", "muon")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("--steps", type=int, nargs="+", default=[600, 1200])
    parser.add_argument("--tasks", type=int, default=800)
    arguments = parser.parse_args()
    store = Store(arguments.home)
    base = store.require("checkpoints", "base_model").path
    problems = demonstrations(store.require("datasets", "clean_problems").path)
    chats = [(prompt_text(problem), problem.solutions[0]) for problem in problems]
    tasks = heldout_tasks(PROFILE.family, FIRST, arguments.tasks)
    print("| optimizer | steps | CPU s | last loss | held-out solved |\n" + "|---" * 5 + "|")
    for optimizer in OPTIMIZERS:
        for steps in arguments.steps:
            with tempfile.TemporaryDirectory() as scratch, Sandbox(PROFILE.sandbox) as sandbox:
                config = WarmUp(steps=steps, optimizer=optimizer)
                started = time.process_time()
                losses = warm_up(base, chats, config, Path(scratch))
                seconds = time.process_time() - started
                benchmark = heldout(tasks, answering(PROFILE.training.answer_tokens))
                name = f"{optimizer}-{steps}"
                solved = evaluate(Path(scratch), name, name, benchmark, sandbox).pass_at_1
            low, high = wilson(round(solved * len(tasks)), len(tasks))
            print(
                f"| {optimizer} | {steps:,} | {seconds:.0f} | {sum(losses[-50:]) / 50:.3f} "
                f"| {solved:.1%} ({low:.1%} to {high:.1%}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
