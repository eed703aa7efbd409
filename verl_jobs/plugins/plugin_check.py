"""Tries a user's parts before anything starts: each is loaded, is asked for what verl will give it, and does one step without Ray.

`python -m verl_jobs.plugins.plugin_check` reads a `Training` as JSON from stdin; its last line is a JSON list, a sentence a part; it exits 2 with the error of the
first that cannot be used. It is a process of its own, for the parts are their user's code, and verl reads the environment when it is imported.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from problems.dataset.rl_parquet import prompt_text, write_verl
from problems.schema import Problem
from problems.sources.compositional import FamilyConfig, generate
from rewards.composite import reward_hash
from rewards.config import RewardConfig
from verl_jobs.config.overrides import overrides
from verl_jobs.config.references import PluginError, load
from verl_jobs.config.scale import Scale
from verl_jobs.config.training import Curriculum, Training
from verl_jobs.job import TrainingJob
from verl_jobs.plugins.dry_steps import STEPS
from verl_jobs.sft.tiny_model import TinyModel, make

PROBLEMS = 6


class Bench:
    """What a step needs: a few problems of the embedded family, a tiny model without training, and verl's whole config of this training on a CPU."""

    def __init__(self, training: Training, folder: Path) -> None:
        plugins = training.plugins.model_copy(
            update={"sampler": ""}
        )  # it and a curriculum draw from what is not there yet
        ours = {"engine": "hf", "scale": Scale(), "curriculum": Curriculum(), "plugins": plugins}
        self.training, self.folder = training.model_copy(update=ours), folder

    @cached_property
    def problems(self) -> list[Problem]:
        return generate(FamilyConfig(demonstrations=1, train=PROBLEMS - 1, validation=1))[:PROBLEMS]

    @cached_property
    def rows(self) -> Path:
        write_verl(self.problems, self.folder / "train.parquet")
        return self.folder / "train.parquet"

    @cached_property
    def model(self) -> Path:
        texts = [
            text for problem in self.problems for text in (prompt_text(problem), *problem.solutions)
        ]
        room = self.training.prompt_tokens + self.training.answer_tokens
        make(TinyModel(hidden=32, layers=1, positions=room), texts, self.folder / "model")
        return self.folder / "model"

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.model)

    @cached_property
    def config(self) -> Any:
        """verl's, of this training; `job.json` lies where our own parts look for it."""
        from hydra import compose, initialize_config_module

        paths = {
            "model": self.model,
            "train": self.rows,
            "validation": self.rows,
            "folder": self.folder,
        }
        told = overrides(self.training, seed=1, loggers=[], name="trial", **paths)
        TrainingJob(
            folder=str(self.folder), chain="trial", start=str(self.model), train=str(self.rows), validation=str(self.rows), inputs={},
            training=self.training, reward=RewardConfig(), reward_hash=reward_hash(RewardConfig()), isolation="auto", seed=1,
        ).write()  # fmt: skip
        with initialize_config_module(config_module="verl.trainer.config", version_base=None):
            return compose("ppo_trainer", overrides=told)

    @cached_property
    def dataset(self) -> Any:
        """The training set as verl makes it: of the user's class where there is one."""
        from verl.trainer.ppo.utils import create_rl_dataset

        return create_rl_dataset([str(self.rows)], self.config.data, self.tokenizer, None)


def try_all(training: Training) -> list[str]:
    """A line a part, what its step gave. Raises PluginError for the first that cannot be used."""
    with tempfile.TemporaryDirectory(prefix="ratchet-trial-") as folder:
        bench = Bench(training, Path(folder))
        return [
            f"{kind} {reference}: {STEPS[kind](load(reference), reference, bench)}"
            for kind, reference in training.plugins.named.items()
        ]


def main() -> None:
    try:
        lines = try_all(Training.model_validate_json(sys.stdin.read()))
    except PluginError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"\n{json.dumps(lines)}")


if __name__ == "__main__":
    main()
