"""The code location of examples/own_services.py trains, with a Ray of its own in addition."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from resources.home import Home
from resources.registry.ledger import Ledger
from verl_jobs.job import TrainingJob, metrics

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
PROFILE = """family: {demonstrations: 60, train: 16, validation: 4}
augmentation: {kinds: []}
verification: {mutants: 0}
warm_up: {steps: 4}
ranking: {problems: 4, answers: 2}
training: {steps: 2, problems_per_step: 4, group_size: 4, save_every: 2}
evaluation: {heldout: 8, benchmarks: []}
"""
# The example runs programs in one worker; at another level than the profile's, which is `auto`, its
# use is recorded.
MORE = """
from resources.ray.private import Private
from resources.services import RayResource


class BareSandbox(SmallSandbox):
    def config(self, profile):
        return replace(super().config(profile), isolation="bare")


class OwnRay(RayResource):
    def of(self, job, home, profile):
        return Private(home.path / "own_ray", job, profile.ray.bind)


defs = definitions(
    ray=OwnRay(),
    sandbox=BareSandbox(workers=1),
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    path = tmp_path_factory.mktemp("services")
    example = (ROOT / "examples" / "own_services.py").read_text(encoding="utf-8")
    start = "defs = definitions(\n    sandbox=SmallSandbox(workers=1),\n"
    assert start in example
    (path / "mine.py").write_text(example.replace(start, MORE), encoding="utf-8")
    (path / "tiny.yaml").write_text(PROFILE, encoding="utf-8")
    (path / "dagster").mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(path / "dagster"),
        "RATCHET_HOME": str(path / "home"),
        "RATCHET_PROFILE": str(path / "tiny.yaml"),
    }
    command = ["dagster", "job", "execute", "-f", "mine.py", "-j", "full_pipeline"]
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-5000:]
    return Home(path / "home")


@pytest.fixture(scope="module")
def job(home: Home) -> TrainingJob:
    [file] = home.runs.folder.glob("chain-0001/training/*/job.json")
    return TrainingJob.read(file)


def test_it_ends_with_a_decision(home: Home) -> None:
    assert Ledger(home.ledger).history()[0].kind == "install"


def test_stages_and_training_use_the_sandbox(home: Home, job: TrainingJob) -> None:
    verified = home.store().require("datasets", "verified_problems")
    assert "bare" in str(verified.manifest.isolation)
    assert job.isolation == "bare"
    assert job.workers == 1


def test_the_training_runs_on_the_ray(home: Home) -> None:
    assert (home.path / "own_ray" / "head.log").exists()
    assert not (home.path / "ray").exists()


def test_the_tracker_has_each_step_and_replaces_the_loggers(home: Home, job: TrainingJob) -> None:
    with (home.path.parent / ".ratchet" / "curves" / "chain-0001.csv").open() as file:
        rows = [int(row["step"]) for row in csv.DictReader(file)]
    assert rows == [row["step"] for row in metrics(job.path)]
    assert rows[-1] == 2
    assert home.path.joinpath("mlflow.db").exists()
    assert not (job.path / "wandb").exists()


def test_the_checkpoints_page_links_the_curve(home: Home) -> None:
    with dg.DagsterInstance.from_config(str(home.path.parent / "dagster")) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("checkpoint"))
    assert event
    assert event.asset_materialization
    metadata = event.asset_materialization.metadata
    assert metadata["curve"].value == ".ratchet/curves/chain-0001.csv"
    assert "mlflow" in metadata
    assert "wandb" not in metadata
