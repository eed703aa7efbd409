"""The asset graph, its jobs, checks and sensors, and the cost of loading it."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from pipelines.definitions import defs
from pipelines.jobs import PIPELINE_ASSETS, record_failure
from problems.schema import problem_schema
from tests.children import python
from tests.open_runs import open_test_run
from tests.pipelines.home_builder import HomeBuilder

GRAPH = """
data        problem_sources       <-
data        raw_problems          <- problem_sources
data        verified_problems     <- raw_problems
data        augmented_problems    <- verified_problems
data        synthetic_problems    <- verified_problems
data        clean_problems        <- augmented_problems, synthetic_problems, verified_problems
models      base_model            <- clean_problems
models      sft_checkpoint        <- base_model, clean_problems
models      difficulty_rankings   <- clean_problems, sft_checkpoint
models      checkpoint            <- clean_problems, difficulty_rankings, sft_checkpoint
evaluation  benchmark_scores      <- checkpoint
evaluation  contestant_scores     <- benchmark_scores, checkpoint
evaluation  leaderboard           <- contestant_scores
evaluation  training_report       <- contestant_scores, leaderboard
promotion   promoted_model        <- contestant_scores, leaderboard, training_report
promotion   deployment            <- promoted_model
"""
CHECKS = {
    "raw_problems: schema_holds",
    "verified_problems: verified_tests_are_strong",
    "augmented_problems: augmented_tests_are_strong",
    "synthetic_problems: synthetic_tests_are_strong",
    "clean_problems: no_gated_problem",
    "clean_problems: no_heldout_function",
    "clean_problems: no_secret",
    "difficulty_rankings: reward_battery",
    "checkpoint: whole_checkpoint",
    "checkpoint: healthy_training",
    "checkpoint: no_growing_gap",
    "contestant_scores: scores_are_sane",
    "promoted_model: champion_is_whole",
}
HEAVY = (
    "torch",
    "ray",
    "verl",
    "transformers",
    "datasets",
    "mlflow",
    "wandb",
    "pandas",
    "scipy",
    "matplotlib",
)


def test_the_asset_graph_has_these_dependencies() -> None:
    graph = defs.resolve_asset_graph()
    lines = []
    for key in graph.toposorted_asset_keys:
        node = graph.get(key)
        parents = ", ".join(sorted(parent.to_user_string() for parent in node.parent_keys))
        lines.append(f"{node.group_name:<11} {key.to_user_string():<21} <- {parents}".rstrip())
    assert sorted(lines) == sorted(GRAPH.strip().splitlines())


def test_every_asset_has_a_description_owners_and_kinds() -> None:
    for spec in defs.resolve_all_asset_specs():
        assert spec.description, spec.key
        assert list(spec.owners), spec.key
        assert spec.kinds, spec.key


def test_every_check_but_one_blocks() -> None:
    specs = [
        spec
        for definition in defs.asset_checks or []
        for spec in definition.check_specs
        if isinstance(definition, dg.AssetChecksDefinition)
    ]
    assert {f"{spec.asset_key.to_user_string()}: {spec.name}" for spec in specs} == CHECKS
    assert [spec.name for spec in specs if not spec.blocking] == ["healthy_training"]


@pytest.mark.parametrize(
    "name",
    [
        "full_pipeline",
        "smoke",
        "refresh_data",
        "evaluate_checkpoint",
        "score_benchmark",
        "promote",
        "rollback",
        "tell_mlflow",
    ],
)
def test_a_job_exists_with_a_description(name: str) -> None:
    assert defs.resolve_job_def(name).description


def test_what_trains_by_itself_is_off_by_default_and_the_others_on() -> None:
    repository = defs.get_repository_def()
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "new_checkpoint",
        "new_problems",
        "changed_hub",
        "changed_problems",
        "champion_regression",
        "stale_scores",
        "mlflow_follows",
        "champion_release",
        "ended_release",
        "degraded_champion",
        "messages",
    }
    assert {
        sensor.name
        for sensor in repository.sensor_defs
        if sensor.default_status is dg.DefaultSensorStatus.STOPPED
    } == {"changed_problems", "champion_regression", "degraded_champion"}
    assert {s.name for s in repository.schedule_defs} == {
        "nightly_retraining",
        "daily_validation",
        "weekly_benchmarks",
        "daily_clean_up",
    }
    assert [
        schedule.name
        for schedule in repository.schedule_defs
        if schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    ] == ["nightly_retraining"]


def test_loading_imports_no_heavy_packages() -> None:
    code = (
        "import sys; from pipelines.definitions import defs; "
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    result = python("-c", code, check=True)
    assert result.stdout.strip() == "[]"


def test_a_failed_manual_promotion_is_no_failed_pipeline_run(
    home_builder: HomeBuilder,
) -> None:
    pipeline_run = open_test_run(home_builder.run_context.home.runs, "chain-0001")
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("checkpoints", ["chain-0001"])
        job = defs.resolve_job_def("promote")
        ended = job.execute_in_process(
            instance=instance,
            partition_key="chain-0001",
            resources=_of(home_builder),
            raise_on_error=False,
        )
    assert not ended.success
    assert pipeline_run.record.failures == 0


def test_a_failed_stage_counts_as_a_failed_pipeline_run(home_builder: HomeBuilder) -> None:
    pipeline_run = open_test_run(home_builder.run_context.home.runs, "chain-0001")
    home_builder.run_context.home.sources.write_text("{broken", encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("checkpoints", ["chain-0001"])
        job = defs.resolve_job_def("full_pipeline")
        ended = job.execute_in_process(
            instance=instance,
            partition_key="chain-0001",
            resources=_of(home_builder),
            raise_on_error=False,
        )
    assert not ended.success
    assert pipeline_run.record.failures == 1
    assert "raw_problems" in pipeline_run.record.error


def test_a_run_without_a_partition_fails_at_its_first_stage(
    home_builder: HomeBuilder,
) -> None:
    """`dagster job launch` starts a run like this: it omits the tags of the job."""
    bare = dg.define_asset_job(
        "bare",
        dg.AssetSelection.assets(*PIPELINE_ASSETS),
        hooks={record_failure},
        executor_def=dg.in_process_executor,
    )
    job = dg.Definitions(
        assets=PIPELINE_ASSETS, jobs=[bare], resources=_of(home_builder)
    ).resolve_job_def("bare")
    with dg.DagsterInstance.ephemeral() as instance:
        ended = job.execute_in_process(instance=instance, raise_on_error=False)
    [failed] = [event for event in ended.all_events if event.is_step_failure]
    assert failed.step_key == "raw_problems"
    assert "`dagster job execute" in str(failed.step_failure_data.user_failure_data)
    assert not list(home_builder.run_context.home.runs.folder.glob("*"))


@pytest.mark.slow
def test_an_unpartitioned_stage_materializes_without_a_partition(
    home_builder: HomeBuilder,
) -> None:
    """The page of the asset in the UI starts a run like this, without a partition."""
    job = dg.Definitions(
        assets=PIPELINE_ASSETS, resources=_of(home_builder)
    ).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        ended = job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey("raw_problems")]
        )
    assert ended.success


def _of(home_builder: HomeBuilder) -> dict[str, object]:
    return home_builder.run_context.resources | {"io_manager": dg.mem_io_manager}


def test_whatever_starts_runs_says_when_and_why() -> None:
    repository = defs.get_repository_def()
    described = {
        **{each.name: each.description for each in repository.sensor_defs},
        **{each.name: each.description for each in repository.schedule_defs},
        **{each.name: each.description for each in repository.get_all_jobs()},
    }
    assert [name for name, text in described.items() if not text] == ["__ASSET_JOB"]


def test_every_stored_asset_has_a_code_version_and_problems_have_columns() -> None:
    graph = defs.resolve_asset_graph()
    keys = {key.to_user_string(): key for key in graph.materializable_asset_keys}
    without = [name for name, key in keys.items() if graph.get(key).code_version is None]
    assert sorted(without) == ["deployment", "promoted_model", "training_report"]
    for name in ("raw", "verified", "augmented", "synthetic", "clean"):
        schema = graph.get(keys[f"{name}_problems"]).metadata["dagster/column_schema"]
        assert [column.name for column in schema.columns] == problem_schema().names


def test_every_asset_links_to_its_code() -> None:
    linked = {
        spec.key.to_user_string()
        for spec in defs.resolve_all_asset_specs()
        if "dagster/code_references" in spec.metadata
    }
    expected = {asset.key.to_user_string() for asset in PIPELINE_ASSETS}
    assert linked == expected | {"benchmark_scores", "deployment"}


def test_trainings_share_a_pool() -> None:
    pools = {
        asset.key.to_user_string(): asset.op.pool for asset in PIPELINE_ASSETS if asset.op.pool
    }
    assert pools == {"sft_checkpoint": "training", "checkpoint": "training"}


def test_a_sensor_or_schedule_says_whether_it_starts_a_training() -> None:
    repository = defs.get_repository_def()
    starts = {"nightly_retraining", "changed_problems", "champion_regression", "degraded_champion"}
    starters: list[Any] = [*repository.sensor_defs, *repository.schedule_defs]
    described = {each.name: str(each.description) for each in starters}
    assert {
        name for name, text in described.items() if text.startswith("Starts a training. ")
    } == starts
    others = [text for name, text in described.items() if name not in starts]
    assert all(text.startswith(("Only scores. ", "Trains nothing. ")) for text in others)
