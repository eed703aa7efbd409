"""How hard the held-out tasks are: warmed-up models on tasks of two to four and of five operations.

`python -m measurements.heldout_difficulty [folder]`: two models of seed 11, one warmed up on
demonstrations with mistakes as in the embedded profile, one on demonstrations without. About four
minutes on one core. 400 tasks a draw, greedy completions.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from evaluation.benchmarks.embedded import answering, heldout
from evaluation.evaluate import evaluate
from evaluation.statistics.hypothesis_tests import wilson
from problems.prompt import prompt_text
from problems.sources.compositional import FamilyConfig, demonstration, generate
from problems.sources.heldout import heldout_draw, short_draw
from sandbox.sandbox import Sandbox
from verl_jobs.config.training import Training
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.sft.warm_up import WarmUp, warm_up

TASKS, SEED = 400, 11


def model(folder: Path, family: FamilyConfig) -> Path:
    """Return the folder of a model that is warmed up on the family's demonstrations."""
    start = folder / f"start-{family.slip_rate:g}"
    if not (start / "config.json").exists():
        chats = [
            (prompt_text(problem), demonstration(problem))
            for problem in generate(family)
            if problem.split == "demonstrations"
        ]
        base = folder / f"base-{family.slip_rate:g}"
        make(TinyModel(seed=SEED), [text for chat in chats for text in chat], base)
        warm_up(base, chats, WarmUp(seed=SEED, threads=1), start)
    return start


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    sampling = answering(Training().answer_tokens)
    print("| mistakes shown | draw | operations | solved (95 % interval) |\n|---|---|---|---|")
    for slip_rate in (FamilyConfig().slip_rate, 0.0):
        family = FamilyConfig(seed=SEED, slip_rate=slip_rate)
        start = model(folder, family)
        draws = {
            ("1", "2 to 4"): short_draw(family, 1, TASKS),
            ("1", "5"): heldout_draw(family, 1, TASKS),
            ("20,000", "5"): heldout_draw(family, 20_000, TASKS),
        }
        with Sandbox() as sandbox:
            for (number, operations), tasks in draws.items():
                card = evaluate(start, "start", "start", heldout(tasks, sampling), sandbox)
                low, high = wilson(sum(card.solved.values()), TASKS)
                print(
                    f"| {slip_rate:.0%} | {number} | {operations} | {100 * card.pass_at_1:.1f} % "
                    f"({100 * low:.1f} to {100 * high:.1f}) |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
