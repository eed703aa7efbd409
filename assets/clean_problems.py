"""Clean problems: the data that training may use.

In: verified and derived problems. Out: those that are not gated, similar to gated ones, unlicensed,
poor or duplicate, and hold no secret.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.charts import image
from artifacts.hashing import hash_data
from artifacts.store import Artifact
from assets.fetched_dataset import fetched_dataset
from assets.markdown import markdown
from assets.stages import STAGES, asset_of
from assets.tables import PROBLEM_COLUMNS, by_split, dataset_figures, removing_stage
from evaluation.benchmarks.registry import check_guards, is_custom, opened
from problems.cleaning.contamination import GatedIndex
from problems.cleaning.fingerprints import known_task
from problems.cleaning.gating import gated_as
from problems.cleaning.secrets import secret_in
from problems.dataset.balance import read_weights, shares
from problems.dataset.card import CARD, DIFFICULTY, WEIGHTS, balance_table
from problems.dataset.charts import funnel_chart
from problems.dataset.curated import GATED, write_curated
from problems.dataset.evidence import CONTAMINATION
from problems.embedded.behaviour import part_of
from problems.embedded.compositional import composition_of
from problems.funnel import Stage
from problems.schema import Problem, read_columns, read_parquet
from problems.stored import stored_problems
from resources.preflight import check_parts
from resources.run_context import RunContext, StageContext, StageOutput, result

SHOWN = 50  # likenesses to gated tasks in the asset's table; all are in the report


@dg.asset(
    **asset_of("clean_problems"),
    metadata=PROBLEM_COLUMNS,
    kinds={"python", "parquet"},
)
def clean_problems(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Verified and derived problems without gated benchmarks, problems similar to them, secrets and
    duplicates. Removed problems are stored with the reason.
    """
    with run_context.stage(context) as stage:
        artifact, earlier_stages = (_fetched if stage.profile.dataset else _curated)(stage)
        stages = [*earlier_stages, removing_stage(artifact)]
        stage.report.say(f"{stages[-1].went_out} of {stages[-1].came_in} kept")
    return result(artifact, _metadata(artifact, stages))


def _fetched(stage: StageContext) -> tuple[Artifact, list[Stage]]:
    """Return the dataset that the profile names; the stages before it were elsewhere."""
    artifact = fetched_dataset(stage)
    warn_of_unguarded(stage, artifact.path / GATED)
    check_parts(stage.profile, stored_problems(artifact.path), "dataset")
    return artifact, []


def _curated(stage: StageContext) -> tuple[Artifact, list[Stage]]:
    """Curate the problems of this home; also return the funnel's stages before this one."""
    raw, *parts = (
        stage.store.require("datasets", f"{name}_problems")
        for name in ("raw", "verified", "augmented", "synthetic")
    )
    config, custom = stage.profile.curation, custom_problems(stage)
    warn_of_unguarded(stage, raw.path / "problems.parquet")
    earlier_stages = _earlier_stages(raw, *parts)

    def make(folder: Path) -> StageOutput:
        candidates = [problem for part in parts for problem in stored_problems(part.path)]
        # The raw problems include gated ones that verification removed.
        gated = [problem for problem in stored_problems(raw.path) if problem.gated] + [
            problem for problems in custom.values() for problem in problems
        ]
        with stage.run_context.new_sandbox() as sandbox:
            facts = write_curated(
                candidates,
                gated,
                config,
                earlier_stages,
                folder,
                sandbox,
                journal=stage.run_context.home.path / "journals" / "cleaning.jsonl",
                on_progress=stage.report.progress.at,
            )
        return StageOutput(facts)

    inputs = {part.manifest.name: part.content_hash for part in (raw, *parts)} | {
        f"benchmark {name}": hash_data([problem.content_hash for problem in problems])
        for name, problems in custom.items()
    }
    artifact_config = config.model_dump(mode="json", exclude={"processes"})
    artifact = stage.artifact(STAGES["clean_problems"], make, inputs=inputs, config=artifact_config)
    check_parts(stage.profile, stored_problems(artifact.path), "sources")  # of those that are left
    return artifact, earlier_stages


def _earlier_stages(raw: Artifact, verified: Artifact, *derived: Artifact) -> list[Stage]:
    """Return the funnel's stages before this one; derived problems join beside the verified."""
    return [
        # Rejected rows are named by their source alone: their paths belong to one machine.
        Stage.of("read", raw.manifest.facts),
        removing_stage(verified),
        *(removing_stage(part, beside=True) for part in derived),
    ]


def _metadata(artifact: Artifact, stages: Sequence[Stage]) -> dict[str, Any]:
    facts, problems = artifact.manifest.facts, stored_problems(artifact.path)
    return {
        **dataset_figures(artifact, stages, image("funnel", funnel_chart(stages))),
        "parts": dg.MetadataValue.md(by_split(artifact.path)),
        "licences": dg.MetadataValue.md(
            markdown(("source", "licence", "problems", "allowed"), facts["licences"])
        ),
        **_contamination(artifact.path / CONTAMINATION),
        "difficulty": dg.MetadataValue.md(
            image("static difficulty", (artifact.path / DIFFICULTY).read_text(encoding="utf-8"))
        ),
        "balance": dg.MetadataValue.md(
            balance_table(shares(problems, read_weights(artifact.path / WEIGHTS)))
        ),
        "card": dg.MetadataValue.path(str(artifact.path / CARD)),
        "reports": dg.MetadataValue.json(facts["reports"]),
    }


def _contamination(file: Path) -> dict[str, Any]:
    """Return how many problems resemble gated tasks, how many of them were removed, and a table."""
    reports = json.loads(file.read_text(encoding="utf-8"))
    rows = [
        (
            report["problem_id"],
            near["gated_id"],
            f"{near['kind']} {near['detail']}",
            "removed" if near["leak"] else "suspect",
            near["mine"],
            near["theirs"],
        )
        for report in reports
        for near in report["resembles"]
    ]
    rows.sort(key=lambda row: row[3] != "removed")
    table = markdown(("problem", "gated", "how", "", "here", "there"), rows[:SHOWN])
    return {
        "resemble_gated_tasks": len(reports),
        "removed_as_contaminated": sum(report["removed"] for report in reports),
        "contamination": dg.MetadataValue.md(table if rows else "none"),
    }


def warn_of_unguarded(stage: StageContext, problems: Path) -> None:
    """Name the profile's benchmarks that the data is not compared with.

    Raises ProblemError if the one that decides on promotions is among them.
    """
    rows = read_columns(problems, ["source", "gated"])
    sources = {row["source"] for row in rows if row["gated"]}
    names = [settings.name for settings in stage.profile.evaluation.benchmarks]
    for name in check_guards(names, stage.profile.policy.benchmark, sources):
        stage.report.say(f"the data is not compared with {name}: its tasks were not added")


def custom_problems(stage: StageContext) -> dict[str, list[Problem]]:
    """Return the tasks of the profile's YAML benchmarks by name, marked as gated.

    No training may use them, as with published benchmarks. Raises ProblemError and OSError for data
    that cannot be read.
    """
    home = stage.run_context.home.path
    return {
        benchmark.name: [replace(problem, gated=True) for problem in benchmark.problems]
        for settings in stage.profile.evaluation.benchmarks
        if is_custom(settings.name)
        for benchmark in [opened(settings.name, None, home)]
    }


@dg.asset_check(asset=clean_problems, blocking=True)
def no_gated_problem(run_context: RunContext) -> dg.AssetCheckResult:
    """No problem on disk is gated, derived from a gated problem, or overlaps one.

    The check does not rely on the column `gated` alone.
    """
    folder = run_context.store.require("datasets", "clean_problems").path
    problems = stored_problems(folder)
    processes = run_context.profile.curation.processes
    leaking = {
        overlap.problem_id
        for overlap in GatedIndex(read_parquet(folder / GATED)).overlaps(problems, processes)
        if overlap.leak
    }
    problem_ids = [
        problem.problem_id
        for problem in problems
        if problem.gated
        or gated_as(problem)
        or known_task(problem)
        or problem.problem_id in leaking
    ]
    return dg.AssetCheckResult(
        passed=not problem_ids,
        metadata={
            "count": len(problem_ids),
            "problem_ids": dg.MetadataValue.json(problem_ids[:20]),
        },
    )


@dg.asset_check(asset=clean_problems, blocking=True)
def no_secret(run_context: RunContext) -> dg.AssetCheckResult:
    """No column of the data on disk has a key, a password or personal data.

    Findings name the column, not the value.
    """
    problems = stored_problems(run_context.store.require("datasets", "clean_problems").path)
    findings = [
        f"{problem.problem_id}: {secret[0]} in {secret[1]}"
        for problem in problems
        if (secret := secret_in(problem))
    ]
    return dg.AssetCheckResult(
        passed=not findings,
        metadata={"count": len(findings), "problems": dg.MetadataValue.json(findings[:20])},
    )


@dg.asset_check(asset=clean_problems, blocking=True)
def no_heldout_function(run_context: RunContext) -> dg.AssetCheckResult:
    """No function of the held-out part occurs in the problems for training or validation."""
    problems = stored_problems(run_context.store.require("datasets", "clean_problems").path)
    problem_ids = [problem.problem_id for problem in problems if _is_heldout(problem)]
    return dg.AssetCheckResult(
        passed=not problem_ids,
        metadata={
            "count": len(problem_ids),
            "problem_ids": dg.MetadataValue.json(problem_ids[:20]),
        },
    )


def _is_heldout(problem: Problem) -> bool:
    return problem.source == "embedded" and part_of(composition_of(problem)) == "heldout"
