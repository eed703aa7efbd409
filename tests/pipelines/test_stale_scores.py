"""The champion is evaluated daily and weekly, and whenever an input of its score has changed."""

from __future__ import annotations

import json

import dagster as dg
import pytest

from artifacts.manifest import Manifest
from assets.contestant_scores import read_scores
from evaluation.scorecard import Scorecard
from pipelines.definitions import defs
from pipelines.schedules import daily_validation, weekly_benchmarks
from pipelines.sensors.stale_scores import stale_scores
from problems.dataset.evidence import CONTAMINATION, SUSPECTS
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import write_parquet
from resources.model_version import ModelVersion
from tests.open_runs import open_test_run
from tests.pipelines.home_builder import HomeBuilder, scorecard_of
from tests.pipelines.ticks import tick


def cleaned(home_builder: HomeBuilder, validation: int, report: str) -> None:
    """Store clean problems as the stage does, with a contamination report of this hash."""
    problems = generate(FamilyConfig(demonstrations=4, train=2, validation=validation))
    with home_builder.run_context.store.draft("datasets", "clean_problems") as folder:
        write_parquet(problems, folder / "problems.parquet")
        suspect = next(problem.problem_id for problem in problems if problem.split == "validation")
        (folder / SUSPECTS).write_text(
            json.dumps({"validation": [{"task": suspect, "problem_id": "x", "how": "tests"}]})
        )
        facts = {"reports": {CONTAMINATION: report}}
        home_builder.run_context.store.publish(
            folder,
            Manifest(
                kind="datasets",
                name="clean_problems",
                key=f"{validation}{report}",
                content_hash="",
                facts=facts,
            ),
        )


def evaluated(home_builder: HomeBuilder, instance: dg.DagsterInstance) -> dg.SensorResult:
    result = stale_scores(
        dg.build_sensor_context(instance=instance, resources=home_builder.run_context.resources)
    )
    assert isinstance(result, dg.SensorResult)
    return result


def rescored(
    home_builder: HomeBuilder, champion: object, name: str, version: str, report: str
) -> None:
    """Add a finished evaluation of the champion on the validation problems."""
    checkpoint = home_builder.run_context.store.require("checkpoints", str(champion))
    known = ModelVersion(
        checkpoint=checkpoint.manifest.name,
        content_hash=checkpoint.content_hash,
        path=str(checkpoint.path),
    )
    pipeline_run = open_test_run(
        home_builder.run_context.home.runs, name, kind="rescore", champion=known
    )
    with home_builder.run_context.store.draft("scores", name) as folder:
        (folder / "not_measured.json").write_text("{}", encoding="utf-8")
        scorecard_of(checkpoint, 5, 8, version, "validation").write(
            folder / "champion--validation.json"
        )
        home_builder.run_context.store.publish(
            folder,
            Manifest(
                kind="scores",
                name=name,
                key=name,
                content_hash="",
                inputs={"contamination report": report},
            ),
        )
    pipeline_run.change(state="done")


def test_a_new_benchmark_or_contamination_report_rescores_the_champion(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    from evaluation.benchmarks import validation

    assert "no champion" in str(evaluated(home_builder, instance).skip_reason)
    home_builder.promoted("chain-0001-sft")
    cleaned(home_builder, 8, "one")
    now = validation(generate(FamilyConfig(demonstrations=4, train=2, validation=8))).version
    rescored(home_builder, "chain-0001-sft", "rescore-1", now, "one")
    result = evaluated(home_builder, instance)
    assert result.skip_reason
    assert not result.run_requests
    cleaned(home_builder, 8, "two")
    [report], [again] = (
        evaluated(home_builder, instance).run_requests or [],
        evaluated(home_builder, instance).run_requests or [],
    )
    assert report.run_key == again.run_key
    assert "contamination report" in report.tags["ratchet/why"]
    assert report.tags["ratchet/kind"] == "rescore"
    cleaned(home_builder, 9, "one")
    [other] = evaluated(home_builder, instance).run_requests or []
    assert other.run_key != report.run_key
    assert other.tags["ratchet/why"].endswith("validation")
    rescored(home_builder, "chain-0001-sft", str(other.partition_key), "v9", "one")
    # v9 is not the current version either.
    [third] = evaluated(home_builder, instance).run_requests or []
    assert third.run_key != report.run_key


def test_a_new_harness_rescores_the_champion(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_builder.promoted("chain-0001-sft")
    monkeypatch.setattr("pipelines.sensors.stale_scores.VERSION", "next")
    [request] = evaluated(home_builder, instance).run_requests or []
    assert request.tags["ratchet/why"].endswith("harness")


@pytest.mark.parametrize(
    ("schedule", "kind"), [(daily_validation, "validation"), (weekly_benchmarks, "rescore")]
)
def test_schedules_evaluate_the_champion_daily_and_weekly(
    home_builder: HomeBuilder,
    instance: dg.DagsterInstance,
    schedule: dg.ScheduleDefinition,
    kind: str,
) -> None:
    resources = home_builder.run_context.resources
    assert isinstance(tick(schedule, instance, resources), dg.SkipReason)
    champion = home_builder.promoted("chain-0001-sft")
    request = tick(schedule, instance, resources)
    assert isinstance(request, dg.RunRequest)
    assert request.tags["ratchet/kind"] == kind
    assert (
        request.partition_key == request.run_key == f"{kind}-{champion.content_hash[:8]}-2026-11-22"
    )
    assert instance.has_dynamic_partition("checkpoints", str(request.partition_key))
    job = defs.resolve_job_def("evaluate_checkpoint")
    assert schedule.job_name == job.name
    assert dg.validate_run_config(job, request.run_config) is not None


@pytest.mark.slow
def test_a_daily_validation_reports_failures_and_cost(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    cleaned(home_builder, 6, "one")
    problems = generate(FamilyConfig(demonstrations=4, train=2, validation=6))
    home_builder.tiny_champion([problem.statement for problem in problems] * 8)
    request = tick(daily_validation, instance, home_builder.run_context.resources)
    assert isinstance(request, dg.RunRequest)
    job = defs.resolve_job_def("evaluate_checkpoint")
    resources = home_builder.run_context.resources | {"io_manager": dg.mem_io_manager}
    ended = job.execute_in_process(
        instance=instance,
        partition_key=request.partition_key,
        tags=request.tags,
        resources=resources,
    )
    assert ended.success
    scores = read_scores(
        home_builder.run_context.store.require("scores", str(request.partition_key))
    )
    assert list(scores.champion) == ["validation"]
    assert not scores.challenger
    assert "quick" in scores.not_measured["heldout"]
    [shown] = [
        e.materialization.metadata
        for e in ended.get_asset_materialization_events()
        if e.asset_key == dg.AssetKey("contestant_scores")
    ]
    assert "extraction" in str(shown["failures"].value) or "cut" in str(shown["failures"].value)
    assert "% without 1" in str(shown["scores"].value)
    assert "truncated" in str(shown["scores"].value)
    assert "style" in str(shown["quality"].value)
    board = home_builder.run_context.store.require("reports", "leaderboard")
    assert "% without 1" in (board.path / "leaderboard.md").read_text(encoding="utf-8")
    artifact = home_builder.run_context.store.require("scores", "tiny--validation")
    card = Scorecard.stored(artifact)
    assert card.prompts.keys() == card.first.keys()
