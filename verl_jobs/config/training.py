"""Settings of one verl run. Every default is the embedded profile's and has been run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import (
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from artifacts.section import Section
from verl_jobs.config.agents import Agents
from verl_jobs.config.algorithms import ALGORITHMS, Algorithm, Name
from verl_jobs.config.answer_stages import AnswerStage, stages_error
from verl_jobs.config.checkpoints import Keep, StopSettings
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.lora import Lora
from verl_jobs.config.references import Plugins
from verl_jobs.config.scale import Engine, ScaleSettings, layout_error
from verl_jobs.config.validation import Validation
from verl_jobs.config.verl_conflicts import conflict
from verl_jobs.config.verl_schema import checked

MAX_ENTROPY = 0.005  # of an adaptive weight (verl_jobs/trainer/entropy.py)
CLIP = 0.2  # arXiv:1707.06347, and verl's default


class Training(Section):
    """Reinforcement learning with verl on Ray."""

    model_config = ConfigDict(allow_inf_nan=False)

    algorithm: Name = "grpo"
    """The algorithm; `ratchet train --algorithm NAME --show` prints its paper, rule and verl
    overrides (verl_jobs/config/algorithms.py).
    """
    engine: Engine = "hf"
    """Engine that generates the rollouts: `hf` on CPU, `vllm` or `sglang` on GPU.
    `transformers`: the engine of the CPU on a GPU, slow, for a machine without vLLM.
    """
    steps: PositiveInt = 20
    """Optimizer steps; a step is one batch of problems."""
    problems_per_step: PositiveInt = 32
    """Problems per step."""
    group_size: int = Field(8, ge=2)
    """Completions per problem; the group is the baseline of each of its completions."""
    learning_rate: PositiveFloat = 3e-4
    """Peak learning rate; 7e-4 destroys a model of this size, 1e-6 is usual at 7 B."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate after the warm-up: constant, or cosine decay to 0 at the last step."""
    warm_up_steps: NonNegativeInt = 0
    """Steps over which the learning rate rises from 0."""
    clip: PositiveFloat = CLIP
    """Maximum distance from 1 of the ratio of new to old probability in the loss; dapo, gspo and
    cispo define their own. Has an effect only with `scale.updates` of 2 or more.
    """
    clip_high: NonNegativeFloat = 0.0
    """Maximum distance above 1, if it is not `clip` (dapo's clip-higher: 0.28); 0: as `clip`."""
    dynamic_sampling: bool = False
    """Whether groups that are all solved or all unsolved are dropped and others sampled, up to
    three batches a step; dapo always does.
    """
    overlong: Literal["none", "penalty", "mask"] | None = None
    """Completions near or at the maximum length. `penalty`: the last fifth of the length costs up
    to 1 of the reward; `mask`: a truncated one counts in its group's baseline, but is not learned
    from. None: as the algorithm; dapo penalizes.
    """
    entropy_coefficient: NonNegativeFloat = 0.0
    """Weight of the entropy in the loss; above 0, higher entropy is rewarded."""
    entropy_target: NonNegativeFloat = 0.0
    """Entropy in nats a token below which its weight in the loss grows, by 0.0001 a step to at most
    0.005; it shrinks again above, where the entropy does not count. 0: the weight is constant.
    """
    gradient_clip: PositiveFloat = 1.0
    """Maximum norm of the gradient; a longer gradient is scaled down."""
    weight_decay: NonNegativeFloat = 0.01
    """AdamW's decay of the weights."""
    temperature: PositiveFloat = 1.0
    """Sampling temperature of the rollouts."""
    final_temperature: NonNegativeFloat = 0.0
    """Temperature of the last step's rollouts, approached linearly; 0: the temperature stays
    constant.
    """
    kl_coefficient: NonNegativeFloat = 0.0
    """Weight of the KL to the start policy; 0: no reference model is loaded."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Where the KL counts: as a term of the loss (arXiv:2402.03300), or subtracted from each
    token's reward (arXiv:1909.08593).
    """
    kl_target: NonNegativeFloat = 0.0
    """With `kl_in: reward`: target KL in nats a token; the coefficient changes by up to 2 % a step
    to reach it. 0: the coefficient is constant.
    """
    reward_normalised: bool = False
    """Whether each step's rewards are normalised to mean 0 and standard deviation 1. For rloo,
    remax, dr_grpo and the critic of ppo; the others divide by a standard deviation anyway.
    """
    reward_clip: NonNegativeFloat = 0.0
    """Rewards are clipped to this absolute value, in standard deviations if they are normalised; 0:
    no clipping.
    """
    importance_cap: NonNegativeFloat = 0.0
    """Cap of truncated importance sampling between the engine's and the trainer's probabilities (2
    is usual with vLLM); 0: none.
    """
    lora: Lora | None = None
    """Train adapters instead of all weights; checkpoints hold the merged weights, and the adapter
    next to them.
    """
    frozen: tuple[str, ...] = ()
    """Names of parameters that are not trained, e.g. [model.embed_tokens.*, model.layers.0.*]; with
    adapters, no other parameter is trained anyway.
    """
    prompt_tokens: PositiveInt = 112
    """Maximum tokens of a prompt; problems with a longer one are dropped when the data is loaded.
    """
    answer_tokens: PositiveInt = 112
    """Maximum tokens of a completion; a longer one is truncated and counted as truncated."""
    answer_stages: tuple[AnswerStage, ...] = ()
    """First steps with a shorter maximum, the shortest first. [{until: 160, tokens: 16384}] holds
    to step 160, inclusive. Later steps, and validation in all steps, have `answer_tokens`.
    """
    save_every: PositiveInt = 5
    """Steps between checkpoints, each scored on the validation problems; the most steps that a
    killed training repeats.
    """
    stall_s: PositiveFloat = 1800.0
    """Seconds without progress after which a training counts as stuck, ends, and resumes from its
    last checkpoint. After two steps it is 20 times the longest wait so far, if that is less, and
    at least 300 s.
    """
    validation: Validation = Validation()
    curriculum: Curriculum = Curriculum()
    keep: Keep = Keep()
    agents: Agents = Agents()
    stop: StopSettings = StopSettings()
    plugins: Plugins = Plugins()
    ranks: PositiveInt = 1
    """Data-parallel trainer processes: GPUs, or CPU processes over gloo."""
    threads: NonNegativeInt = 2
    """OpenMP threads per process; bitwise repeatable runs need a fixed number. 0: the machine's
    default.
    """
    scale: ScaleSettings = ScaleSettings()
    trace: tuple[PositiveInt, ...] = ()
    """Steps that torch's profiler records on rank 0, with Ray's timeline of the run; `ratchet jobs
    profile` prints their folder.
    """
    verl: tuple[str, ...] = ()
    """Further overrides of verl, each `name=value` as for Hydra, e.g.
    actor_rollout_ref.rollout.top_p=0.95. They replace ours; a name that verl does not have is
    refused.
    """

    @model_validator(mode="after")
    def check(self) -> Training:
        for fault in self._faults():
            raise ValueError(fault)
        return self

    def _faults(self) -> Iterator[str]:
        """Yield why these settings do not fit together, with the fix."""
        megatron = self.scale.megatron is not None
        for override in self.verl:
            checked(override, megatron=megatron)
        if error := conflict(self.verl, megatron=megatron, entropy_target=self.entropy_target):
            yield error
        if error := layout_error(
            self.scale, self.engine, self.ranks, self.problems_per_step, self.group_size
        ):
            yield error
        if self.scale.megatron and self.method.critic:
            yield (
                f"{self.algorithm} trains a critic, which scale.megatron does not support: remove "
                "scale.megatron, or choose an algorithm without a critic"
            )
        if self.kl_target and (self.kl_in != "reward" or not self.kl_coefficient):
            yield (
                "kl_target needs kl_in: reward and a kl_coefficient above 0: set both, or remove "
                "kl_target"
            )
        if self.lora and self.frozen:
            yield "lora already freezes all other weights: set lora or frozen, not both"
        if self.warm_up_steps >= self.steps:
            yield (
                f"warm_up_steps must be less than steps ({self.steps}), got {self.warm_up_steps}"
            )
        if (self.clip != CLIP or self.clip_high) and self.method.clips:
            yield (
                f"{self.algorithm} has its own clipping rule: remove clip and clip_high, or "
                "choose an algorithm such as grpo"
            )
        if self.plugins.advantage and (self.method.critic or self.method.greedy):
            yield (
                f"plugins.advantage cannot replace the estimator of {self.algorithm}, which needs "
                "a critic or greedy completions: set algorithm: grpo"
            )
        if self.plugins.sampler and self.curriculum.schedule != "uniform":
            yield (
                f"plugins.sampler and curriculum.schedule {self.curriculum.schedule} both select "
                "problems: set only one"
            )
        if self.steps % self.save_every:
            yield (
                f"steps must be a multiple of save_every ({self.save_every}), got {self.steps}: "
                "the last steps would not be saved"
            )
        if self.entropy_target and self.entropy_coefficient > MAX_ENTROPY:
            yield (
                f"entropy_coefficient is where the weight starts if entropy_target is set, at most "
                f"{MAX_ENTROPY}, got {self.entropy_coefficient}"
            )
        if self.entropy_target and self.method.sums_over_tokens:
            yield (
                f"entropy_target is in nats a token, which verl does not measure with "
                f"{self.algorithm}: take another algorithm, or a constant entropy_coefficient"
            )
        if error := stages_error(self.answer_stages, self.answer_tokens, self.steps):
            yield error
        if self.agents.on and self.plugins.unbatched:
            yield (
                "conversations cannot use plugins.agent_loop or plugins.reward_manager: remove "
                "them, or agents"
            )
        if self.agents.several and self.agents.tokens < 2 * self.answer_tokens:
            yield (
                f"agents.tokens must be at least {2 * self.answer_tokens} (two messages of "
                f"{self.answer_tokens} tokens), got {self.agents.tokens}"
            )

    def answer_tokens_at(self, step: int) -> int:
        """Return the maximum tokens of a completion that is sampled for this step."""
        current = (stage.tokens for stage in self.answer_stages if step <= stage.until)
        return next(current, self.answer_tokens)

    def temperature_at(self, step: int) -> float:
        """Return the sampling temperature of a step, counted from 1."""
        if not self.final_temperature or self.steps == 1:
            return self.temperature
        share = (min(max(step, 1), self.steps) - 1) / (self.steps - 1)
        return self.temperature + share * (self.final_temperature - self.temperature)

    @property
    def response_tokens(self) -> int:
        """Maximum tokens after the prompt, of a completion or of a whole conversation."""
        return self.agents.tokens if self.agents.several else self.answer_tokens

    def response_tokens_at(self, step: int) -> int:
        """Return `response_tokens` of what is sampled for this step."""
        return self.agents.tokens if self.agents.several else self.answer_tokens_at(step)

    @property
    def drops_equal_groups(self) -> bool:
        """Whether groups that are all solved or all unsolved are sampled again."""
        return self.dynamic_sampling or self.method.drops_equal_groups

    @property
    def overlong_rule(self) -> Literal["none", "penalty", "mask"]:
        """What happens to completions of about the maximum length."""
        return self.overlong or ("penalty" if self.method.drops_equal_groups else "none")

    @property
    def selects_problems(self) -> bool:
        """Whether a curriculum or a plugin selects each step's problems.

        Otherwise verl shuffles them.
        """
        return self.curriculum.schedule != "uniform" or bool(self.plugins.sampler)

    @property
    def method(self) -> Algorithm:
        return ALGORITHMS[self.algorithm]
