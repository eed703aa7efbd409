"""Tests see neither the settings nor the home folder of the person who runs them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import dagster as dg

    from sandbox.sandbox import Sandbox
    from tests.pipelines.home_builder import HomeBuilder

# With a thread a core, torch's tiny models take twice the CPU time, and groups of tests run beside
# each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A slow machine must not fail a property test: no deadline, and examples that are large or slow to
# generate are accepted.
settings.register_profile(
    "busy machine",
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("busy machine")

OURS = (
    "RATCHET_HOME",
    "RATCHET_PROFILE",
    "RATCHET_UNVERIFIED",
    "RATCHET_SET",
    "DAGSTER_HOME",
    "RAY_ADDRESS",
    "MLFLOW_TRACKING_URI",
    "WANDB_API_KEY",
)


@pytest.fixture(scope="session", autouse=True)
def no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in OURS:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    from sandbox.sandbox import Sandbox, SandboxConfig

    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


@pytest.fixture(scope="session")
def empty_instance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Dagster instance without runs, because creating its databases takes long."""
    import dagster as dg

    folder = tmp_path_factory.mktemp("dagster")
    with dg.instance_for_test(temp_dir=str(folder)) as instance:
        instance.get_runs_count()
        instance.all_instigator_state()
        instance.get_asset_keys()
    return folder


@pytest.fixture
def instance(empty_instance: Path, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance on disk: a schedule opens it by its reference."""
    import dagster as dg

    folder = shutil.copytree(empty_instance, tmp_path / "dagster-instance")
    with dg.instance_for_test(temp_dir=str(folder)) as opened:
        yield opened


@pytest.fixture
def home_builder(tmp_path: Path) -> HomeBuilder:
    from tests.pipelines.home_builder import HomeBuilder

    return HomeBuilder(tmp_path / "a home")


@pytest.fixture(scope="session")
def empty_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow file without a model, to copy into a home: creating its tables takes seconds."""
    from resources.registry.mlflow import Registry

    home = tmp_path_factory.mktemp("mlflow")
    Registry(home)._client().search_registered_models()
    return home / "mlflow.db"


@pytest.fixture(scope="module")
def few_simple_problems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use three of the shipped simple problems; tests/problems/test_simple.py verifies all."""
    from problems.sources import simple

    content = json.loads(simple.FILE.read_text(encoding="utf-8"))
    file = tmp_path_factory.mktemp("simple") / simple.FILE.name
    file.write_text(json.dumps(content | {"problems": content["problems"][:3]}), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simple, "FILE", file)
        yield
