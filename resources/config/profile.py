"""The one typed configuration: every section is the room's own, a profile is a YAML file of what differs.

In: a name (`embedded`, `small`, `gpu`, `cluster`) or the path of a YAML file. Out: a `Profile`, or a `ProfileError` that names the key and the mend.
Imports no Dagster and nothing heavy, so that `ratchet status` answers at once and a bad profile is refused before anything starts.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from evaluation.promotion.gate import Policy
from problems.augmentation.augment import Augmentation
from problems.cleaning.curation import Curation
from problems.sources.compositional import FamilyConfig
from problems.synthesis.synthesize import Synthesis
from problems.verification.verification import Verification
from resources.config.ledger_url import check_url
from resources.config.tuning import Tuning
from rewards.composite import RewardConfig
from sandbox.sandbox import SandboxConfig
from verl_jobs.config.training import Training
from verl_jobs.sft.adaptation import Adaptation
from verl_jobs.sft.tiny_model import TinyModel
from verl_jobs.sft.warm_up import WarmUp

LOOPBACK = "127.0.0.1"


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Needs(Section):
    """What must be there before a run begins; a run that finds less is refused in one line."""

    disk_gib: NonNegativeFloat = 2.0
    """Free disk under RATCHET_HOME."""
    memory_gib: NonNegativeFloat = 9.0
    """Available memory: the embedded chain was measured at 8.2 GiB (docs/measurements)."""


class Ranking(Section):
    """How hard each training problem is for the policy that training starts from."""

    problems: PositiveInt = 128
    """Problems sampled from the training part; the others rank by what these show of their tags."""
    answers: PositiveInt = 4
    """Answers a problem."""
    temperature: PositiveFloat = 1.0
    """That of training, so that the pass rate is the reward training will see."""


class Evaluation(Section):
    """What a checkpoint is asked."""

    heldout: PositiveInt = 400
    """Held-out problems a gate: fresh ones each time."""
    benchmarks: tuple[str, ...] = ("humaneval", "mbpp")
    """Public benchmarks, scored where a path was added or the hub is reachable, else listed as not measured."""
    hub: bool = False
    """Whether a benchmark without a local file may be fetched from the Hugging Face hub."""
    price_per_million_tokens: NonNegativeFloat = 0.0
    """What a million tokens of answers cost, in the currency of `price_per_hour`: for the cost of a solved problem; 0: none is shown."""

    @field_validator("benchmarks")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from evaluation.benchmarks.registry import in_pipeline

        if unknown := set(names) - set(in_pipeline()):
            raise ValueError(f"no benchmark {min(unknown)!r}: known are {', '.join(in_pipeline())}")
        return names


class Automation(Section):
    """What starts by itself while the daemon runs."""

    nightly: str = "0 3 * * *"
    """Cron line of the nightly retraining, in UTC."""
    daily: str = "0 6 * * *"
    """Cron line of the champion's quick validation, in UTC."""
    weekly: str = "0 7 * * 0"
    """Cron line on which the champion is scored on all benchmarks, in UTC."""
    poll_s: PositiveInt = 30
    """Seconds between two looks of a sensor."""
    hub_hours: PositiveFloat = 6.0
    """The hub is asked this often whether its datasets among the sources have changed."""
    rescore_hours: PositiveFloat = 24.0
    """The champion is scored again on a fresh held-out draw this often."""
    regression_alpha: float = Field(0.01, gt=0, lt=0.5)
    """A fall that chance explains with no more than this probability is a regression."""
    cooldown_hours: NonNegativeFloat = 6.0
    """Least time between two retrainings that a sensor asks for."""
    retrainings_a_day: NonNegativeInt = 2
    """Most retrainings that sensors ask for in 24 hours."""


class Storage(Section):
    """Where artifacts lie."""

    root: str = ""
    """Any fsspec URL (`s3://bucket/prefix`); empty: RATCHET_HOME."""
    ledger: str = ""
    """Record of promotions on a server that several machines share, `postgresql://user@host:port/database`; the password comes from the environment
    (PGPASSWORD or PGPASSFILE). Empty: a SQLite file in RATCHET_HOME."""
    mlflow: str = Field("", pattern=r"^(https?://[^@]+)?$")
    """MLflow server for runs and versions, `http://host:5000`; its login comes from the environment (MLFLOW_TRACKING_USERNAME and _PASSWORD, or
    _TOKEN). Empty: a SQLite file in RATCHET_HOME."""

    @field_validator("ledger")
    @classmethod
    def ledger_without_password(cls, url: str) -> str:
        if url:
            check_url(url)
        return url


class Postgres(Section):
    """Dagster's own database on a server; the password comes from the environment variable DAGSTER_POSTGRES_PASSWORD."""

    hostname: str
    """Name of the server."""
    username: str = "dagster"
    """Whose login it is."""
    database: str = "dagster"
    """Database on the server; it must be there."""
    port: PositiveInt = 5432
    """Where the server listens."""


class Kubernetes(Section):
    """Where run workers are started."""

    namespace: str = "ratchet"
    """Namespace of the run workers' jobs."""
    service_account: str = "ratchet"
    """Service account that may make jobs there."""
    image: str = "ratchet:0.1.0"
    """Image of the run workers, as your cluster's registry names it (deploy/Dockerfile makes it)."""


class KubeRay(Section):
    """The Ray cluster that `ratchet jobs manifest` writes for KubeRay's operator; image and namespace are those of `orchestration.kubernetes`."""

    workers: PositiveInt = 1
    """Most worker pods; with a gang, all of them."""
    least: NonNegativeInt = 0
    """Worker pods that stay when nothing is asked of them."""
    idle_s: PositiveInt = 300
    """Seconds without work after which a worker pod goes."""
    gpus: NonNegativeInt = 1
    """Of a worker pod."""
    cpus: PositiveInt = 8
    """Of a worker pod."""
    memory_gib: PositiveInt = 64
    """Of a worker pod; a quarter of it may be shared memory (NCCL, Ray's objects)."""
    spot: Literal["", "gke", "eks", "karpenter", "aks"] = ""
    """Whose interruptible nodes are taken first, with nodes on demand where there are none; empty: on demand alone."""
    priority_class: str = ""
    """Kubernetes' priority class of all pods."""
    gang: Literal["", "volcano", "yunikorn", "kueue"] = ""
    """Scheduler that starts all pods or none; nothing is scaled then."""
    queue: str = ""
    """Queue of that scheduler."""

    @model_validator(mode="after")
    def gang_has_its_queue(self) -> KubeRay:
        if self.gang and not self.queue:
            raise ValueError(f"gang: {self.gang} needs a `queue`")
        if self.least > self.workers:
            raise ValueError(f"least {self.least} is more than workers {self.workers}")
        return self


class RayPlace(Section):
    """Where training runs: a Ray of its own on this machine, or one that is there. The same job file runs in each."""

    address: str = Field("", pattern=r"^(https?://.+)?$")
    """Dashboard of a Ray to submit to, `http://host:8265`; its nodes must see RATCHET_HOME at the same path. Empty: a private Ray on this machine."""
    bind: str = LOOPBACK
    """Address of this machine for the private Ray. On 127.0.0.1 it keeps to itself. At another one other machines may join it, and then Ray's servers
    listen on every interface, for they know no third way: the dashboard alone keeps to the address. Who comes in is asked for its token; Ray's
    metrics are there for all to read."""
    patience_s: PositiveFloat = 120.0
    """Seconds that a training which has begun waits for the Ray of `address`, or nodes of it, that are gone; then it goes on with what is left."""
    kuberay: KubeRay = KubeRay()

    @field_validator("bind")
    @classmethod
    def alone_or_for_others(cls, address: str) -> str:
        if address != LOOPBACK and re.fullmatch(r"localhost|::1|0*127\..*", address):
            raise ValueError(
                f"Ray keeps to itself on {LOOPBACK} alone and listens on every interface for {address}: give {LOOPBACK}"
            )
        return address


class Orchestration(Section):
    """How Dagster runs."""

    launcher: Literal["local", "kubernetes"] = "local"
    """Where runs are started: as processes here, or as Kubernetes jobs."""
    kubernetes: Kubernetes | None = None
    """Needed by the launcher kubernetes."""
    postgres: Postgres | None = None
    """None: SQLite under RATCHET_HOME/dagster."""

    @model_validator(mode="after")
    def launcher_has_its_section(self) -> Orchestration:
        if self.launcher == "kubernetes" and self.kubernetes is None:
            raise ValueError(
                "launcher: kubernetes needs a section `kubernetes` (namespace, service_account, image)"
            )
        return self


class Profile(Section):
    """Everything that is decided by configuration. The defaults are the embedded profile, which is the one that is tested most."""

    seed: NonNegativeInt = 1
    """Of the chain; training seeds follow from it and the chain's number."""
    family: FamilyConfig = FamilyConfig()
    augmentation: Augmentation = Augmentation()
    verification: Verification = Verification()
    synthesis: Synthesis = Synthesis()
    curation: Curation = Curation()
    base: str = ""
    """A Hugging Face checkpoint to start from, by hub id or path; empty: a tiny model made from scratch."""
    price_per_hour: NonNegativeFloat = 0.0
    """What the machines of a training cost an hour, in any currency: for the cost that is shown while it runs; 0: none is shown."""
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
    orchestration: Orchestration = Orchestration()
