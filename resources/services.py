"""The services of a run as Dagster resources: settings, storage, Ray, sandbox, registry, tracker.

In: config, the tags of the Dagster run, and the profile. Out: the objects that the stages use.
Replace a service by a subclass under the same key (docs/how-to/replace-resources.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field, PrivateAttr

from artifacts.store import Store
from resources.config.load import load_profile
from resources.config.profile import Profile
from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.mlflow import Registry
from resources.run_links import mlflow_link, wandb_link
from resources.settings import Settings
from sandbox.config import SandboxConfig
from sandbox.sandbox import Sandbox
from verl_jobs.job import LOGGERS, TrainingJob

if TYPE_CHECKING:
    from resources.ray.private import Joined, Private

PROFILE = "ratchet/profile"
# folder under RATCHET_HOME that is a home of its own: the job smoke never touches a real champion
SUBHOME = "ratchet/home"


def run_tag(context: dg.InitResourceContext, name: str) -> str:
    """Return a tag of the run; empty without it, and outside of a run.

    Tags are used, not run config: `dagster job execute` applies a job's tags, but not its default
    config.
    """
    return context.run.tags.get(name, "") if context.run else ""


class SettingsResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The profile of a run: everything that is set by configuration, from a name and changes."""

    profile_name: str = Field(
        default="embedded", description="Name or path; the run tag ratchet/profile overrides it."
    )
    changes: list[str] = Field(
        default=[], description="Changes to the profile, section.key=value each."
    )
    unverified: bool = Field(
        default=False,
        description="Whether to train with a reward that the exploit battery refused.",
    )
    _of_run: str = PrivateAttr("")

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        self._of_run = run_tag(context, PROFILE)

    @property
    def name(self) -> str:
        return self._of_run or self.profile_name

    @cached_property
    def profile(self) -> Profile:
        """The whole typed config. Raises ProfileError."""
        return load_profile(self.name, self.changes, unverified=self.unverified)


class StorageResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """RATCHET_HOME and the artifact store: the home, or the profile's `storage.root`."""

    path: str = Field(
        description="RATCHET_HOME; the run tag ratchet/home names a separate home below it."
    )
    _below: str = PrivateAttr("")

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        self._below = run_tag(context, SUBHOME)

    @property
    def home(self) -> Home:
        return Home(Path(self.path) / self._below)

    def database(self, profile: Profile) -> str:
        """Return the server of the records; "" for files in the home."""
        return "" if self.separate else profile.storage.ledger

    @property
    def separate(self) -> bool:
        """Whether this is a home below RATCHET_HOME, which shares no ledger and no MLflow."""
        return bool(self._below)

    def store(self, profile: Profile) -> Store:
        return self.home.store(profile.storage.root)


class RayResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The Ray of a training: a private one on this machine, or the one at the profile's
    `ray.address`.
    """

    def of(self, job: TrainingJob, home: Home, profile: Profile) -> Private | Joined:
        """Return the Ray that trains this job. It is started or joined when the job needs it."""
        from resources.ray.place import ray_of

        return ray_of(home, profile, job)


class SandboxResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The sandbox in which programs of problems and models run: the profile's section `sandbox`."""

    def config(self, profile: Profile) -> SandboxConfig:
        """Return the sandbox's settings, which trainings use too."""
        return profile.sandbox

    def create(self, profile: Profile) -> Sandbox:
        """Return a sandbox that is not yet open."""
        return Sandbox(self.config(profile))


class RegistryResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The promotion ledger and the MLflow registry: files of the home, or the servers at the
    profile's `storage.ledger` and `storage.mlflow`.
    """

    def ledger(self, storage: StorageResource, profile: Profile) -> Ledger:
        return Ledger(storage.database(profile) or storage.home.ledger, storage.home.path)

    def mlflow(self, storage: StorageResource, profile: Profile) -> Registry:
        return Registry(storage.home.path, "" if storage.separate else profile.storage.mlflow)


class TrackerResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where the curves of trainings go: W&B, offline without an API key, and MLflow."""

    loggers: list[str] = Field(
        default=list(LOGGERS), description="Loggers of verl, without those it always has (file)."
    )

    def log(self, job: TrainingJob, history: Sequence[Mapping[str, Any]]) -> None:
        """Called while a job trains, after each new step, and at its end; may be repeated.

        history: one dictionary of metrics per step, from the first to the newest. Does nothing
        here, because verl's loggers run inside the training.
        """

    def links(self, job: TrainingJob, registry: Registry) -> dict[str, dg.MetadataValue[Any]]:
        """Return the links to the job's runs for the checkpoint's page, by name."""
        links: dict[str, dg.MetadataValue[Any]] = {}
        if "wandb" in self.loggers:
            links["wandb"] = wandb_link(job.path)
        if "mlflow" in self.loggers:
            links["mlflow"] = mlflow_link(registry, job.run_id)
        return links


def services(settings: Settings) -> dict[str, dg.ConfigurableResource[Any]]:
    """Return the default services by their keys."""
    return {
        "settings": SettingsResource(
            profile_name=settings.profile_name,
            changes=list(settings.changes),
            unverified=settings.unverified,
        ),
        "storage": StorageResource(path=str(settings.place.path)),
        "ray": RayResource(),
        "sandbox": SandboxResource(),
        "registry": RegistryResource(),
        "tracker": TrackerResource(),
    }
