"""The tiny training of dry runs of user plugins: problems, rows, a model, verl's config."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from problems.dataset.rl_parquet import write_verl
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.prompt import prompt_text
from problems.schema import Problem
from rewards.composite import reward_hash
from rewards.config import RewardConfig
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.overrides import overrides
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.sft.tiny_model import TinyModel, make

PROBLEMS = 6


class TinyTraining:
    """Everything that one training step needs, on a CPU.

    A few problems of the embedded family, a tiny untrained model, and verl's whole config of this
    training.
    """

    def __init__(self, training: Training, folder: Path) -> None:
        # samplers and curricula need pass rates, which do not exist yet
        plugins = training.plugins.model_copy(update={"sampler": ""})
        changes = {
            "engine": "hf",
            "scale": ScaleSettings(),
            "curriculum": Curriculum(),
            "plugins": plugins,
        }
        self.training, self.folder = training.model_copy(update=changes), folder

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
        positions = self.training.prompt_tokens + self.training.answer_tokens
        make(TinyModel(hidden=32, layers=1, positions=positions), texts, self.folder / "model")
        return self.folder / "model"

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.model)

    @cached_property
    def job(self) -> TrainingJob:
        """The training as a job; validation is on the training's own problems."""
        return TrainingJob(
            folder=str(self.folder), run_id="trial", start=str(self.model), train=str(self.rows),
            validation=str(self.rows), inputs={}, training=self.training, reward=RewardConfig(),
            reward_hash=reward_hash(RewardConfig()), isolation="auto", seed=1, loggers=(),
        )  # fmt: skip

    @cached_property
    def config(self) -> Any:
        """verl's config of this training; also writes `job.json` where our parts read it."""
        from hydra import compose, initialize_config_module

        paths = {
            "model": self.model,
            "train": self.rows,
            "validation": self.rows,
            "folder": self.folder,
        }
        lines = overrides(self.training, seed=1, loggers=[], name="trial", **paths)
        self.job.write()
        with initialize_config_module(config_module="verl.trainer.config", version_base=None):
            return compose("ppo_trainer", overrides=lines)

    @cached_property
    def dataset(self) -> Any:
        """The training set as verl builds it, with the user's class if there is one."""
        from verl.trainer.ppo.utils import create_rl_dataset

        return create_rl_dataset([str(self.rows)], self.config.data, self.tokenizer, None)
