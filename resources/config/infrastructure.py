"""The sections of the settings that name other machines: storage, databases, Ray, Kubernetes."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from artifacts.section import Section
from resources.config.ledger_url import check_url

LOOPBACK = "127.0.0.1"


class Storage(Section):
    """Where artifacts are stored, and which of them stay."""

    root: str = ""
    """Any fsspec URL (`s3://bucket/prefix`); empty: RATCHET_HOME."""
    ledger: str = ""
    """Database of all records on a server that several homes share,
    `postgresql://user@host:port/database`: promotions, releases, runs with their held-out draws,
    lost tasks, API keys, observations, and the training lease. The password comes from the
    environment (PGPASSWORD or PGPASSFILE). Empty: SQLite files in RATCHET_HOME.
    """
    mlflow: str = Field("", pattern=r"^(https?://[^@]+)?$")
    """MLflow server for runs and versions, `http://host:5000`. Its login comes from the environment
    (MLFLOW_TRACKING_USERNAME and _PASSWORD, or _TOKEN). Empty: a SQLite file in RATCHET_HOME.
    """

    keep_versions: PositiveInt = 2
    """Champions whose weights stay on disk: the present one and those before it. Checkpoints that
    were decided on otherwise are removed after the next decision; their manifests and scores stay.
    """
    keep_saves: NonNegativeInt = 0
    """Newest saves of each training that stay after its decision. A save has the optimizer's
    state: 12.6 bytes a parameter.
    """
    keep_days: PositiveInt = 30
    """Days that Dagster's finished runs, ticks and logs stay."""

    backup: str = ""
    """Where `ratchet backup` writes without a URL of its own; any fsspec URL. Empty: nowhere."""
    backup_hours: PositiveFloat = 26.0
    """Hours after which `ratchet health` misses the next backup there."""

    @field_validator("ledger")
    @classmethod
    def ledger_without_password(cls, url: str) -> str:
        if url:
            check_url(url)
        return url


class Postgres(Section):
    """Dagster's own database on a server.

    The password comes from the environment variable DAGSTER_POSTGRES_PASSWORD.
    """

    hostname: str
    """Host name of the server."""
    username: str = "dagster"
    """Login name."""
    database: str = "dagster"
    """Database on the server; it must exist."""
    port: PositiveInt = 5432
    """Port of the server."""


class Kubernetes(Section):
    """Where run workers are started, and what all pods have in common."""

    namespace: str = "ratchet"
    """Namespace of the run workers' jobs."""
    service_account: str = "ratchet"
    """Service account that may create jobs there."""
    image: str = "ratchet:0.1.0"
    """Image of all pods, as named in your cluster's registry (from deploy/Dockerfile)."""
    seccomp: str = Field("RuntimeDefault", pattern=r"^(RuntimeDefault|Unconfined|Localhost:.+)$")
    """Seccomp profile of all pods. `RuntimeDefault` is within the restricted Pod Security Standard,
    and so is `Localhost:FILE`, a file on each node; one that allows user namespaces gives the
    sandbox the level `userns`. `Unconfined` gives it too, and needs the privileged standard.
    """
    runtime_class: str = ""
    """Runtime class of all pods, for example gvisor or nvidia. Empty: the cluster's default."""
    priority_class: str = ""
    """Priority class of all pods but Ray's, which `ray.kuberay.priority_class` names."""
    run_cpus: PositiveInt = 8
    """CPUs that a run's pod requests, for its sandbox; it may use more. Its memory is that of
    `needs.memory_gib`, as request and limit.
    """


class KubeRay(Section):
    """The Ray cluster that `ratchet jobs manifest` writes for KubeRay's operator.

    Image and namespace are those of `orchestration.kubernetes`.
    """

    workers: PositiveInt = 1
    """Maximum number of worker pods; with a gang, exactly this many."""
    min_workers: NonNegativeInt = 0
    """Worker pods that stay when there is no work."""
    idle_s: PositiveInt = 300
    """Idle seconds after which a worker pod is removed."""
    gpus: NonNegativeInt = 1
    """GPUs per worker pod."""
    cpus: PositiveInt = 8
    """CPUs per worker pod."""
    memory_gib: PositiveInt = 64
    """Memory per worker pod; a quarter of it may be shared memory (NCCL, Ray's objects)."""
    spot: Literal["", "gke", "eks", "karpenter", "aks"] = ""
    """Provider whose interruptible nodes are taken first, with on-demand nodes where there are
    none. Empty: on-demand nodes only.
    """
    priority_class: str = ""
    """Kubernetes' priority class of all pods."""
    gang: Literal["", "volcano", "yunikorn", "kueue"] = ""
    """Scheduler that starts all pods or none; there is no autoscaling then."""
    queue: str = ""
    """Queue of that scheduler."""

    @model_validator(mode="after")
    def gang_has_its_queue(self) -> KubeRay:
        if self.gang and not self.queue:
            raise ValueError(f"gang: {self.gang} needs a `queue`")
        if self.min_workers > self.workers:
            raise ValueError(f"min_workers {self.min_workers} is more than workers {self.workers}")
        return self


class RayPlace(Section):
    """Where training runs: a private Ray on this machine, or an existing one.

    The same job file runs in each.
    """

    address: str = Field("", pattern=r"^(https?://.+)?$")
    """Dashboard of a Ray to submit to, `http://host:8265`. Its nodes must see RATCHET_HOME at the
    same path. Empty: a private Ray on this machine.
    """
    bind: str = LOOPBACK
    """Address of this machine for the private Ray. On 127.0.0.1 it is not reachable from outside.
    At another address other machines may join it. Ray's servers then listen on every interface,
    because Ray cannot restrict them to one; only the dashboard binds to the address. Connections
    need Ray's token, except for reading its metrics.
    """
    patience_s: PositiveFloat = 120.0
    """Seconds that a running training waits for a lost Ray (`address`) or for lost nodes of it.
    Then it continues on the remaining nodes, or on this machine.
    """
    kuberay: KubeRay = KubeRay()

    @field_validator("bind")
    @classmethod
    def alone_or_for_others(cls, address: str) -> str:
        if address != LOOPBACK and re.fullmatch(r"localhost|::1|0*127\..*", address):
            raise ValueError(
                f"Ray keeps to itself on {LOOPBACK} alone and listens on every interface for "
                f"{address}: give {LOOPBACK}"
            )
        return address


class Orchestration(Section):
    """How Dagster runs."""

    launcher: Literal["local", "kubernetes"] = "local"
    """Where runs are started: as processes here, or as Kubernetes jobs."""
    kubernetes: Kubernetes | None = None
    """Required by the launcher kubernetes."""
    postgres: Postgres | None = None
    """None: SQLite under RATCHET_HOME/dagster."""

    @model_validator(mode="after")
    def launcher_has_its_section(self) -> Orchestration:
        if self.launcher == "kubernetes" and self.kubernetes is None:
            raise ValueError(
                "launcher: kubernetes needs a section `kubernetes` (namespace, "
                "service_account, image)"
            )
        return self
