"""The Dagster resource and stage context that every asset works with.

In: a Dagster context. Out: a `StageContext` for one stage: one home with one profile, the pipeline
run that the Dagster run belongs to, its progress, and `artifact`, the cache over the store.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import TypeAdapter

from artifacts.hashing import hash_data
from artifacts.manifest import Manifest
from artifacts.store import Artifact, Store
from resources import lease
from resources.config.profile import Profile
from resources.history import history_of
from resources.home import Home
from resources.registry.ledger import Ledger, champion_of
from resources.registry.mlflow import Registry
from resources.retention import Removal, collect
from resources.run_record import Kind, PipelineRun, next_id, open_run
from resources.services import (
    RayResource,
    RegistryResource,
    SandboxResource,
    SettingsResource,
    StorageResource,
    TrackerResource,
    services,
)
from resources.settings import Settings
from resources.stage import PipelineStage
from resources.stage_report import StageReport
from resources.stage_retry import (
    MAX_RUNTIME,
    refuse_retry_of_overlong_run,
    sandbox_failures_retried,
)
from sandbox.sandbox import Sandbox

CHECKPOINTS = "checkpoints"  # name of the dynamic partitions, one per pipeline run
BENCHMARKS = "benchmarks"  # name of the dynamic partitions, one per scored benchmark
PARTITION = "dagster/partition"
KEY = "ratchet/key"  # tag of the retrainings that sensors start for one cause
TRAINING_TAGS = {"kind": "train"}  # of the runs that dagster.yaml starts one at a time
NO_PARTITION = (
    "this run of {job} has no partition, and would fail at its first stage that needs one, "
    "after the training: `dagster job launch` leaves out a "
    "job's own tags. Start it with `dagster job execute -m pipelines.definitions -j {job}`, in the "
    "UI, or with `ratchet train`"
)
KINDS: TypeAdapter[Kind] = TypeAdapter(Kind)


@dataclass(frozen=True)
class StageOutput:
    """The facts that a stage's code reports about the folder it filled.

    `content_hash` is set only where the bytes contain measured times.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    content_hash: str = ""
    isolation: str | None = None


class RunContext(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The pipeline run that a Dagster run belongs to: its record, lease, progress and stages."""

    settings: dg.ResourceDependency[SettingsResource]
    storage: dg.ResourceDependency[StorageResource]
    ray: dg.ResourceDependency[RayResource]
    sandbox: dg.ResourceDependency[SandboxResource]
    registry: dg.ResourceDependency[RegistryResource]
    tracker: dg.ResourceDependency[TrackerResource]

    @classmethod
    def of(cls, settings: Settings, **replaced: Any) -> "RunContext":
        """Return the run context of these settings. Raises TypeError for an unknown key.

        replaced: services in place of the default ones, by their keys.
        """
        if unknown := replaced.keys() - SERVICES:
            raise TypeError(f"no service {min(unknown)}: name one of {', '.join(sorted(SERVICES))}")
        return cls(**services(settings) | replaced)

    @property
    def resources(self) -> dict[str, Any]:
        """The resources for Dagster: the services, and a run context that takes them by key."""
        return {key: getattr(self, key) for key in SERVICES} | {"run_context": run_context}

    @property
    def home(self) -> Home:
        return replace(self.storage.home, database=self.storage.database(self.profile))

    @property
    def profile(self) -> Profile:
        return self.settings.profile

    @property
    def as_settings(self) -> Settings:
        """The settings that a command has, for code that both call."""
        settings = self.settings
        return Settings(
            self.home, settings.name, tuple(settings.changes), unverified=settings.unverified
        )

    @cached_property
    def store(self) -> Store:
        return self.storage.store(self.profile)

    def new_sandbox(self) -> Sandbox:
        """Return a sandbox that is not yet open: `with run_context.new_sandbox() as sandbox`."""
        return self.sandbox.create(self.profile)

    @property
    def ledger(self) -> Ledger:
        return self.registry.ledger(self.storage, self.profile)

    @property
    def mlflow(self) -> Registry:
        return self.registry.mlflow(self.storage, self.profile)

    @property
    def time_limit(self) -> dict[str, str]:
        """Tags with which the daemon ends a retraining that started automatically."""
        return {MAX_RUNTIME: f"{3600 * self.profile.automation.max_hours:.0f}"}

    def collect(self) -> list[Removal]:
        """Remove what nothing names any more, and return it. Call it within `collecting`."""
        return collect(self.home, self.store, self.ledger, self.profile.storage)

    @contextmanager
    def stage(
        self, context: dg.AssetExecutionContext, *, trains: bool = True
    ) -> "Iterator[StageContext]":
        """Open the stage that has the asset's name.

        In a pipeline run, `trains` takes the home's lease and keeps it until the process ends.
        Raises lease.LeaseHeld, and dg.RetryRequested after a failure of the sandbox.
        """
        layer = context.job_def.asset_layer
        if PARTITION not in context.run.tags and any(
            layer.get(key).partitions_def for key in layer.executable_asset_keys
        ):
            raise dg.Failure(NO_PARTITION.format(job=context.run.job_name), allow_retries=False)
        refuse_retry_of_overlong_run(context.instance, context.run.tags)
        self.home.make()
        run = self.pipeline_run(context.run.tags)
        if trains and run.record.kind == "pipeline":
            lease.take(self.home.lease, run.record.id)
        if run.record.kind not in ("data", "study", "score"):
            context.instance.add_dynamic_partitions(CHECKPOINTS, [run.record.id])
        with sandbox_failures_retried(), run.stage(context.asset_key.path[-1]) as report:
            yield StageContext(self, run, report)

    def pipeline_run(self, tags: Mapping[str, str]) -> PipelineRun:
        """Return the record for a Dagster run with these tags; create it if it is new.

        The run's partition names the record; without one it is the open pipeline run.
        """
        kind = KINDS.validate_python(tags.get("ratchet/kind", "pipeline"))
        champion = champion_of(history_of(self.ledger, self.home.runs))
        known = champion.model if champion else None
        return open_run(
            self.home.runs,
            _record_id(tags) or ("data" if kind == "data" else next_id(self.home.runs)),
            kind=kind,
            base_seed=self.profile.seed,
            profile=self.settings.name,
            why=tags.get("ratchet/why", "started in Dagster"),
            regression=tags.get("ratchet/cause") == "regression",
            champion=known,
            changes=self.settings.changes,
        )


SERVICES = frozenset(RunContext.model_fields)


@dg.resource(description=RunContext.__doc__, required_resource_keys=set(SERVICES))
def run_context(context: dg.InitResourceContext) -> RunContext:
    """Return the run context of the services that have these keys in `Definitions`."""
    return RunContext(**{key: getattr(context.resources, key) for key in SERVICES})


def _record_id(tags: Mapping[str, str]) -> str:
    """Return the name of a run's record: its partition; both names for a cell; "" for none."""
    cell = [tags.get(f"{PARTITION}/{dimension}", "") for dimension in ("checkpoint", "benchmark")]
    return "--".join(cell) if all(cell) else tags.get(PARTITION, "")


@dataclass
class StageContext:
    """Context of one stage of one pipeline run."""

    run_context: RunContext
    pipeline_run: PipelineRun
    report: StageReport

    @property
    def profile(self) -> Profile:
        return self.run_context.profile

    @property
    def store(self) -> Store:
        return self.run_context.store

    def check_lease(self) -> None:
        """Raise LeaseLost if another process has taken over what this one was about to record."""
        lease.check(self.run_context.home.lease)

    def artifact(
        self,
        stage: PipelineStage,
        make: Callable[[Path], StageOutput],
        *,
        inputs: dict[str, str],
        config: dict[str, Any],
        seed: int | None = None,
        name: str = "",
    ) -> Artifact:
        """Return the artifact of these inputs, and make it the current one of its name.

        An artifact of the same code, inputs, config and seed is reused; otherwise `make` fills an
        empty folder. name: of the artifact; default: the stage's. Raises LeaseLost.
        """
        kind, name = stage.kind, name or stage.name
        identity = {"name": name, "inputs": inputs, "config": config, "seed": seed}
        # A resumed run has its own artifact, whose code may have been edited since.
        for code in (self.pipeline_run.code_of(name), stage.code):
            key = hash_data(identity | {"code": code})
            if artifact := self.store.find(kind, name, key):
                self.check_lease()
                self.store.point(artifact.manifest)
                self.report.reused += 1
                self.pipeline_run.keep_code(name, code)
                return artifact
        self.report.created += 1
        with self.store.draft(kind, name) as folder:
            output = make(folder)
            manifest = Manifest(
                kind=kind,
                name=name,
                key=key,
                content_hash=output.content_hash,
                inputs=inputs,
                config=config,
                seed=seed,
                facts=output.facts,
                code=code,
                isolation=output.isolation,
            )
            self.check_lease()
            artifact = self.store.publish(folder, manifest)
        self.pipeline_run.keep_code(name, code)
        return artifact


def result(
    artifact: Artifact,
    metadata: dict[str, Any] | None = None,
    checks: list[dg.AssetCheckResult] | None = None,
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Return what Dagster shows of an artifact: its own metadata, then the common ones."""
    common: dict[str, Any] = {
        "content_hash": artifact.content_hash,
        "path": dg.MetadataValue.path(str(artifact.path)),
        "made_at": artifact.manifest.created_at,
        "inputs": dg.MetadataValue.json(artifact.manifest.inputs),
    }
    data_version = dg.DataVersion(artifact.content_hash)
    return dg.MaterializeResult(
        metadata=(metadata or {}) | common, data_version=data_version, check_results=checks or []
    )
