"""What one verl run is told. Every default is the embedded profile's, and has been run."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from verl_jobs.algorithms import ALGORITHMS, Algorithm, Name


class Stop(BaseModel):
    """When a training ends before its last step; its best checkpoint is kept. Loss or reward that is no number, and a growing gap between visible
    and hidden tests, always end it (verl_jobs/stopping.py).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kl: PositiveFloat = 0.5
    """KL in nats a token, mean of three steps: to the start policy where a KL coefficient has it measured, and of the update."""
    entropy: float = Field(0.1, ge=0, lt=1)
    """Share of the first steps' entropy below which the policy has collapsed; 0: never."""
    patience: NonNegativeInt = 0
    """Validations without a new best after which there is no progress; 0: goes on to the end."""


class Training(BaseModel):
    """Reinforcement learning by verl on Ray."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    algorithm: Name = "grpo"
    """What is optimised; `ratchet train --algorithm NAME --show` gives each one's paper, rule and verl overrides (verl_jobs/algorithms.py)."""
    engine: Literal["hf", "vllm"] = "hf"
    """What writes the rollouts: `hf` on CPU, `vllm` on GPU."""
    steps: PositiveInt = 20
    """Optimizer steps; a step is one batch of problems."""
    problems_per_step: PositiveInt = 32
    """Problems a step."""
    group_size: int = Field(8, ge=2)
    """Answers a problem; the group is each answer's baseline."""
    learning_rate: PositiveFloat = 3e-4
    """At its highest; 7e-4 destroys a model of this size, 1e-6 is usual at 7 B."""
    schedule: Literal["constant", "cosine"] = "constant"
    """How the learning rate goes on after the warm-up: as it is, or down to nothing at the last step."""
    warm_up_steps: NonNegativeInt = 0
    """Steps over which the learning rate rises from 0."""
    gradient_clip: PositiveFloat = 1.0
    """Longest gradient; a longer one is scaled down."""
    temperature: PositiveFloat = 1.0
    """Of the rollouts."""
    kl_coefficient: NonNegativeFloat = 0.0
    """Weight of the KL to the start policy; 0 keeps no reference model."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Where it counts: as a term of the loss (arXiv:2402.03300), or taken off each token's reward (arXiv:1909.08593)."""
    kl_target: NonNegativeFloat = 0.0
    """With `kl_in: reward`: the coefficient is moved until the KL is this many nats a token; 0 leaves it as it is."""
    importance_cap: NonNegativeFloat = 0.0
    """Truncated importance sampling between the engine's and the trainer's probabilities, cut here (2 is usual with vLLM); 0: none."""
    prompt_tokens: PositiveInt = 96
    """Longest prompt; longer problems are dropped when the data is loaded."""
    answer_tokens: PositiveInt = 104
    """Longest answer; a longer one is cut and counted as cut."""
    save_every: PositiveInt = 5
    """Steps between checkpoints, each scored on the validation problems; at most so many are done again after a kill."""
    stop: Stop = Stop()
    ranks: PositiveInt = 1
    """Data-parallel trainer processes: GPUs, or CPU processes over gloo."""
    threads: NonNegativeInt = 2
    """OpenMP threads of a process; part of what makes a run bitwise repeatable. 0 leaves the choice to the machine."""

    @model_validator(mode="after")
    def parts_fit(self) -> Training:
        if self.kl_target and (self.kl_in != "reward" or not self.kl_coefficient):
            raise ValueError("kl_target moves a KL in the reward: give kl_in: reward and a kl_coefficient to begin with")
        if self.warm_up_steps >= self.steps:
            raise ValueError(f"warm_up_steps {self.warm_up_steps} leaves none of {self.steps} steps with the whole learning rate")
        return self

    @model_validator(mode="after")
    def saves_at_the_end(self) -> Training:
        if self.steps % self.save_every:
            raise ValueError(f"steps {self.steps} is no multiple of save_every {self.save_every}: the last steps would be saved by no checkpoint")
        return self

    @property
    def method(self) -> Algorithm:
        return ALGORITHMS[self.algorithm]
