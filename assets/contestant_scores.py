"""Scores of a pipeline run.

In: the run's challenger and its opponent. Out: their scorecards on the same benchmarks, by which
the promotion gate decides.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.hashing import hash_data
from artifacts.integrity import CorruptArtifact
from artifacts.store import Artifact, Store
from assets.benchmark_scores import report_cells, scored
from assets.checkpoint import checkpoint
from assets.contestants import benchmarks_of, contestants_of
from assets.generation import of_benchmarks
from assets.partitions import checkpoints
from assets.pictures import scores_picture
from assets.score_tables import failures_table, quality_table, scores_table
from assets.stages import STAGES, asset_of
from evaluation.judging.reports import NotMeasurable
from evaluation.reports.cost import Price
from evaluation.scorecard import Scorecard
from problems.dataset.evidence import CONTAMINATION, SUSPECTS, suspects_of
from resources.run_context import RunContext, StageContext, StageOutput, result


@dataclass(frozen=True)
class Scores:
    """All scorecards of one pipeline run by benchmark, and the reason for each missing one.

    suspects: suspect tasks by source, from the contamination report at the time of scoring.
    """

    challenger: dict[str, Scorecard]
    champion: dict[str, Scorecard]
    not_measured: dict[str, str]
    suspects: dict[str, list[str]]


@dg.asset(
    **asset_of("contestant_scores"),
    kinds={"huggingface", "json"},
    partitions_def=checkpoints,
)
def contestant_scores(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Challenger and champion on validation, on a held-out draw that no gate has used, and on the
    public benchmarks that are installed.
    """
    with run_context.stage(context, trains=False) as stage:
        record = stage.pipeline_run.record
        artifacts, not_measured = score_contestants(stage)
        report_cells(context, [artifact for each in artifacts.values() for artifact in each])
        bundle = store_scores(stage, artifacts, not_measured)
        scores = read_scores(bundle)
        stage.report.say(
            ", ".join(
                f"{side} {100 * scorecards['heldout'].pass_at_1:.1f} %"
                for side, scorecards in sides(scores)
                if "heldout" in scorecards
            )
        )
    if record.kind != "pipeline":
        stage.pipeline_run.change(state="done")
    if record.kind == "evaluation":
        _report_checkpoint(context, stage)
    return result(bundle, _metadata(scores, stage))


def score_contestants(stage: StageContext) -> tuple[dict[str, list[Artifact]], dict[str, str]]:
    """Score all contestants on the run's benchmarks.

    Returns the scorecards by contestant, and by name the reason for each benchmark that was not
    measured. A benchmark has scorecards of all contestants or of none.
    """
    contestants = contestants_of(stage)
    benchmarks, not_measured = benchmarks_of(stage)
    generation = of_benchmarks(stage, list(contestants.values()), benchmarks)
    artifacts: dict[str, list[Artifact]] = {side: [] for side in contestants}
    for benchmark in benchmarks:
        try:
            scorecards = {
                side: scored(stage, contestant, benchmark, generation)
                for side, contestant in contestants.items()
            }
        except NotMeasurable as error:
            not_measured[benchmark.name] = str(error)
            continue
        for side, artifact in scorecards.items():
            artifacts[side].append(artifact)
    return artifacts, not_measured


def store_scores(
    stage: StageContext, artifacts: dict[str, list[Artifact]], not_measured: dict[str, str]
) -> Artifact:
    """Return the artifact with all scorecards of the run; `read_scores` reads it."""

    def make(folder: Path) -> StageOutput:
        (folder / "not_measured.json").write_text(
            json.dumps(not_measured, indent=1), encoding="utf-8"
        )
        (folder / SUSPECTS).write_text(
            json.dumps(suspects_of(stage.store), indent=1), encoding="utf-8"
        )
        for side, scorecards in artifacts.items():
            for artifact in scorecards:
                scorecard = Scorecard.stored(artifact)
                scorecard.write(folder / f"{side}--{scorecard.benchmark}.json")
        facts = {"draws": [draw.model_dump() for draw in stage.pipeline_run.record.draws]}
        return StageOutput(facts, content_hash=_bundle_hash(artifacts))

    inputs = {
        f"{side}/{artifact.manifest.name}": artifact.content_hash
        for side, scorecards in artifacts.items()
        for artifact in scorecards
    }
    return stage.artifact(
        STAGES["contestant_scores"],
        make,
        name=stage.pipeline_run.record.id,
        inputs=inputs | reports_of(stage.store),
        config={"not_measured": not_measured},
    )


def _metadata(scores: Scores, stage: StageContext) -> dict[str, Any]:
    profile, both = stage.profile, sides(scores)
    scorecards = [(side, card) for side, cards in both for card in cards.values()]
    price = Price(profile.evaluation.price_per_million_tokens, profile.price_per_hour)
    return {
        **{f"{name}_pass_at_1": card.pass_at_1 for name, card in scores.challenger.items()},
        "scores": dg.MetadataValue.md(scores_table(both, scores.suspects, price)),
        "not_measured": dg.MetadataValue.md(
            "\n".join(f"- {name}: {reason}" for name, reason in scores.not_measured.items())
            or "none"
        ),
        "picture": dg.MetadataValue.md(scores_picture(scorecards)),
        "failures": dg.MetadataValue.md(failures_table(both)),
        "quality": dg.MetadataValue.md(quality_table([card for _, card in scorecards])),
        "heldout_tasks": ", ".join(
            f"{draw.first:,} to {draw.end - 1:,}" for draw in stage.pipeline_run.record.draws
        ),
    }


@dg.asset_check(asset=contestant_scores, blocking=True)
def scores_are_sane(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """Every benchmark has scored tasks, and both contestants have the same version of it."""
    scores = read_scores(
        run_context.store.require("scores", run_context.pipeline_run(context.run.tags).record.id)
    )
    faults = []
    for name, card in scores.challenger.items():
        if not card.solved:
            faults.append(f"{name}: no task was scored")
        if (
            other := scores.champion.get(name)
        ) and other.benchmark_version != card.benchmark_version:
            faults.append(f"{name}: champion and challenger have different tasks")
    return dg.AssetCheckResult(
        passed=not faults, metadata={"faults": dg.MetadataValue.json(faults)}
    )


def reports_of(store: Store) -> dict[str, str]:
    """Return the hashes of the contamination report and of the suspect tasks, if they exist."""
    clean = store.current("datasets", "clean_problems")
    hashes = clean.manifest.facts.get("reports", {}) if clean else {}
    return {
        name: hashes[file]
        for name, file in (("contamination report", CONTAMINATION), ("suspects", SUSPECTS))
        if file in hashes
    }


def _report_checkpoint(context: dg.AssetExecutionContext, stage: StageContext) -> None:
    """Report a manually added checkpoint, so that it is a partition like those of other runs."""
    weights = stage.store.require("checkpoints", stage.pipeline_run.record.id)
    metadata: dict[str, Any] = {
        "put_by_hand": stage.pipeline_run.record.why,
        "content_hash": weights.content_hash,
        "path": dg.MetadataValue.path(str(weights.path)),
    }
    tags = {"dagster/data_version": weights.content_hash}
    context.log_event(
        dg.AssetMaterialization(
            checkpoint.key, partition=stage.pipeline_run.record.id, metadata=metadata, tags=tags
        )
    )


def read_scores(bundle: Artifact) -> Scores:
    """Return a run's scorecards. Raises CorruptArtifact for a scorecard that was changed."""
    scorecards: dict[str, dict[str, Scorecard]] = {"challenger": {}, "champion": {}}
    for path in sorted(bundle.path.glob("*--*.json")):
        side, _, benchmark = path.stem.partition("--")
        card = scorecards[side][benchmark] = Scorecard.read(path)
        expected = bundle.manifest.inputs.get(f"{side}/{card.checkpoint}--{card.benchmark}")
        if expected and card.content_hash != expected:
            raise CorruptArtifact(
                f"{path}: its content is not that of its manifest: delete the folder, and evaluate "
                "again"
            )
    not_measured, suspects = bundle.path / "not_measured.json", bundle.path / SUSPECTS
    return Scores(
        **scorecards,
        not_measured=json.loads(not_measured.read_text(encoding="utf-8")),
        suspects=json.loads(suspects.read_text(encoding="utf-8")) if suspects.exists() else {},
    )


def sides(scores: Scores) -> list[tuple[str, dict[str, Scorecard]]]:
    """Return both contestants' scorecards by benchmark, the challenger first."""
    return [("challenger", scores.challenger), ("champion", scores.champion)]


def _bundle_hash(artifacts: dict[str, list[Artifact]]) -> str:
    """Return a hash of the scorecards without their measured times."""
    return hash_data(
        {
            side: [artifact.content_hash for artifact in scorecards]
            for side, scorecards in artifacts.items()
        }
    )
