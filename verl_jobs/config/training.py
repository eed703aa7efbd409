"""What one verl run is told. Every default is the embedded profile's, and has been run."""

from __future__ import annotations

from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from verl_jobs.config.agents import Agents
from verl_jobs.config.algorithms import ALGORITHMS, Algorithm, Name
from verl_jobs.config.lora import Lora
from verl_jobs.config.references import Plugins
from verl_jobs.config.scale import Engine, Scale, misfit

CLIP = 0.2  # arXiv:1707.06347, and verl's own


class Stop(BaseModel):
    """When a training ends before its last step; its best checkpoint is kept. Loss or reward that is no number, and a growing gap between visible
    and hidden tests, always end it (verl_jobs/trainer/early_stop.py).
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )

    kl: PositiveFloat = 0.5
    """KL in nats a token, mean of three steps: to the start policy where a KL coefficient has it measured, and of the update."""
    entropy: float = Field(0.1, ge=0, lt=1)
    """Share of the first steps' entropy below which the policy has collapsed; 0: never."""
    patience: NonNegativeInt = 10
    """Validations without a new best after which there is no progress; 0: goes on to the end."""


class Curriculum(BaseModel):
    """Which problems a step draws, by how often the present policy passes them (verl_jobs/curriculum/curriculum.py); the weights beside the dataset count
    too.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )

    schedule: Literal["uniform", "weighted", "window", "mixed", "competence", "reverse"] = "uniform"
    """`uniform`: all in turn, shuffled by verl. `weighted`: by the dataset's weights alone. `window`: near the target. `mixed`: half of them near the
    target. `competence`: the easiest first, then more and more, all after half of the steps. `reverse`: the hardest first.
    """
    target: float = Field(0.5, gt=0, lt=1)
    """Pass rate that `window` and `mixed` draw near."""
    width: PositiveFloat = 0.2
    """How far a pass rate may be from the target and still be drawn 0.6 times as often; twice as far: 0.14 times."""
    half_life: PositiveFloat = 10.0
    """Steps after which an answer counts half in its problem's pass rate, for the policy that wrote it has gone on."""


class Keep(BaseModel):
    """Which checkpoints stay on disk: saves to go on from, and candidates to choose from."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )

    last: int = Field(2, ge=2)
    """The newest: one to go on from, and at least the one before it, should that be damaged."""
    best: PositiveInt = 1
    """Those with the best validation scores; the run's result is the best of them."""
    every: NonNegativeInt = 0
    """Also each whose step is a multiple of this; 0: none."""


class Training(BaseModel):
    """Reinforcement learning by verl on Ray."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )

    algorithm: Name = "grpo"
    """What is optimised; `ratchet train --algorithm NAME --show` gives each one's paper, rule and verl overrides (verl_jobs/config/algorithms.py)."""
    engine: Engine = "hf"
    """What writes the rollouts: `hf` on CPU, `vllm` or `sglang` on GPU."""
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
    clip: PositiveFloat = CLIP
    """How far the ratio of new to old probability may go from 1 in the loss; dapo, gspo, cispo bring their own. Matters from `scale.updates` 2 on."""
    entropy_coefficient: NonNegativeFloat = 0.0
    """Weight of the entropy in the loss: above 0 the policy is paid for staying undecided."""
    gradient_clip: PositiveFloat = 1.0
    """Longest gradient; a longer one is scaled down."""
    temperature: PositiveFloat = 1.0
    """Of the rollouts."""
    final_temperature: NonNegativeFloat = 0.0
    """That of the last step's rollouts: it goes there in a straight line; 0: it stays as it is."""
    kl_coefficient: NonNegativeFloat = 0.0
    """Weight of the KL to the start policy; 0 keeps no reference model."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Where it counts: as a term of the loss (arXiv:2402.03300), or taken off each token's reward (arXiv:1909.08593)."""
    kl_target: NonNegativeFloat = 0.0
    """With `kl_in: reward`: the coefficient is moved by up to 2 % a step until the KL is this many nats a token; 0 leaves it as it is."""
    reward_normalised: bool = False
    """Each step's rewards less their mean, over their standard deviation: for rloo, remax, dr_grpo and the critic of ppo; others divide anyway."""
    reward_clip: NonNegativeFloat = 0.0
    """Rewards beyond this, in standard deviations where they are normalised, are cut; 0: none."""
    importance_cap: NonNegativeFloat = 0.0
    """Truncated importance sampling between the engine's and the trainer's probabilities, cut here (2 is usual with vLLM); 0: none."""
    lora: Lora | None = None
    """Learns adapters in place of all weights; checkpoints hold the merged weights, and the adapter beside them."""
    frozen: tuple[str, ...] = ()
    """Names of parameters that keep their values, e.g. [model.embed_tokens.*, model.layers.0.*]; with adapters all others do anyway."""
    prompt_tokens: PositiveInt = 96
    """Longest prompt; longer problems are dropped when the data is loaded."""
    answer_tokens: PositiveInt = 104
    """Longest answer; a longer one is cut and counted as cut."""
    save_every: PositiveInt = 5
    """Steps between checkpoints, each scored on the validation problems; at most so many are done again after a kill."""
    curriculum: Curriculum = Curriculum()
    keep: Keep = Keep()
    agents: Agents = Agents()
    stop: Stop = Stop()
    plugins: Plugins = Plugins()
    ranks: PositiveInt = 1
    """Data-parallel trainer processes: GPUs, or CPU processes over gloo."""
    threads: NonNegativeInt = 2
    """OpenMP threads of a process; part of what makes a run bitwise repeatable. 0 leaves the choice to the machine."""
    scale: Scale = Scale()
    trace: tuple[PositiveInt, ...] = ()
    """Steps whose operations torch's profiler notes on rank 0, and with them Ray's timeline of the run; `ratchet jobs profile` sums them up."""

    @model_validator(mode="after")
    def fits_its_ranks(self) -> Training:
        if why := misfit(
            self.scale, self.engine, self.ranks, self.problems_per_step, self.group_size
        ):
            raise ValueError(why)
        if self.scale.megatron and self.method.critic:
            raise ValueError(
                f"{self.algorithm} trains a critic, which is not passed to Megatron here: take FSDP2, or an algorithm without one"
            )
        return self

    @model_validator(mode="after")
    def parts_fit(self) -> Training:
        if self.kl_target and (self.kl_in != "reward" or not self.kl_coefficient):
            raise ValueError(
                "kl_target moves a KL in the reward: give kl_in: reward and a kl_coefficient to begin with"
            )
        if self.lora and self.frozen:
            raise ValueError("lora leaves every other weight as it is: give lora or frozen")
        if self.warm_up_steps >= self.steps:
            raise ValueError(
                f"warm_up_steps {self.warm_up_steps} leaves none of {self.steps} steps with the whole learning rate"
            )
        return self

    @model_validator(mode="after")
    def clip_is_one(self) -> Training:
        if self.clip != CLIP and self.method.clips:
            raise ValueError(
                f"{self.algorithm} clips by a rule of its own: leave out clip, or take an algorithm such as grpo"
            )
        return self

    @model_validator(mode="after")
    def estimator_is_one(self) -> Training:
        if self.plugins.advantage and (self.method.critic or self.method.greedy):
            raise ValueError(
                f"plugins.advantage takes the place of {self.algorithm}'s estimator, for which it alone draws more: take algorithm: grpo"
            )
        return self

    @model_validator(mode="after")
    def sampler_is_one(self) -> Training:
        if self.plugins.sampler and self.curriculum.schedule != "uniform":
            raise ValueError(
                f"plugins.sampler draws instead of curriculum.schedule {self.curriculum.schedule}: give one of them"
            )
        return self

    @model_validator(mode="after")
    def saves_at_the_end(self) -> Training:
        if self.steps % self.save_every:
            raise ValueError(
                f"steps {self.steps} is no multiple of save_every {self.save_every}: the last steps would be saved by no checkpoint"
            )
        return self

    def temperature_at(self, step: int) -> float:
        """Of the rollouts of this step, which is counted from 1."""
        if not self.final_temperature or self.steps == 1:
            return self.temperature
        share = (min(max(step, 1), self.steps) - 1) / (self.steps - 1)
        return self.temperature + share * (self.final_temperature - self.temperature)

    @model_validator(mode="after")
    def conversations_fit(self) -> Training:
        if self.agents.on and self.plugins.unbatched:
            raise ValueError(
                "conversations have a loop and a reward of their own: leave out agents, or plugins.agent_loop and plugins.reward_manager"
            )
        if self.agents.turns > 1 and self.agents.tokens < 2 * self.answer_tokens:
            raise ValueError(
                f"agents.tokens {self.agents.tokens} leaves no room for a second program of {self.answer_tokens} tokens"
            )
        return self

    @property
    def response_tokens(self) -> int:
        """Most tokens after the prompt: of an answer, or of a whole conversation."""
        return self.agents.tokens if self.agents.turns > 1 else self.answer_tokens

    @property
    def drawn(self) -> bool:
        """Whether something of ours or of the user's chooses each step's problems; else verl shuffles them."""
        return self.curriculum.schedule != "uniform" or bool(self.plugins.sampler)

    @property
    def method(self) -> Algorithm:
        return ALGORITHMS[self.algorithm]
