"""A study without a model and without prepared data: its trainings are `toy_trainer.py`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from artifacts.hashing import hash_data
from artifacts.manifest import Manifest
from evaluation.scorecard import Scorecard
from experiments.study import Study, context_of
from resources.home import Home
from resources.model_version import ModelVersion
from resources.progress import Progress
from resources.run_context import RunContext, StageContext
from resources.run_record import Kind
from resources.settings import Settings
from resources.stage_report import StageReport
from tests.evaluation.scorecards import sample, scorecard
from tests.experiments import toy_trainer
from tests.open_runs import open_test_run

TOY = """
extends: small
evaluation: {heldout: 2}
training: {steps: 4, save_every: 2}
tuning:
  reduction: 2
  space: {training.learning_rate: {log_uniform: [5.0e-5, 6.0e-4]}}
"""


def study_in(folder: Path, profile: str = TOY, id: str = "study-a", kind: Kind = "study") -> Study:
    """Return a study with this profile in a home of its own, with rows that nothing trains on."""
    file = folder / "profile.yaml"
    file.write_text(f"reward: {{kind: random}}\n{profile}\n", encoding="utf-8")
    settings = Settings(Home(folder / "home"), str(file))
    run_context = RunContext.of(settings)
    pipeline_run = open_test_run(
        run_context.home.runs,
        id,
        kind=kind,
        champion=ModelVersion(checkpoint="before", content_hash="c", path="before"),
    )
    report = StageReport(Progress(pipeline_run.progress_file, "checkpoint"))
    stage = StageContext(run_context, pipeline_run, report)
    facts = {"validation": 100}
    manifest = Manifest(
        kind="datasets", name="training_rows", key=hash_data("rows"), content_hash="", facts=facts
    )
    with stage.store.draft("datasets", "training_rows") as rows:
        (rows / "train.parquet").write_bytes(b"rows")
        artifact = stage.store.publish(rows, manifest)
    return Study(settings, stage, artifact, (sys.executable, toy_trainer.__file__))


def changed(study: Study, *changes: str) -> Study:
    """Return the study with these changes to its profile, on the same rows."""
    settings = study.settings.with_changes(changes)
    return replace(
        study, settings=settings, stage=replace(study.stage, run_context=context_of(settings))
    )


def card(solved: str, version: str = "v") -> Scorecard:
    """Return a scorecard of as many tasks as `solved` has digits; 1 is a solved task."""
    samples = (sample(f"t/{i}", digit == "1") for i, digit in enumerate(solved))
    return scorecard("c", samples, benchmark_version=version)
