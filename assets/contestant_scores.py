"""Scores of a pipeline run. In: the run's challenger and its opponent. Out: their scorecards on the
same benchmarks, on which the gate decides.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.hashing import hash_data
from artifacts.integrity import CorruptArtifact
from artifacts.store import Artifact, Store
from assets.benchmark_scores import benchmark_scores, report_cells, scored
from assets.checkpoint import checkpoint
from assets.difficulty_rankings import start_of
from assets.partitions import EVALUATION, OWNERS, checkpoints
from assets.pictures import scores_picture
from assets.score_tables import failures_table, quality_table, scores_table
from evaluation.benchmarks import Benchmark, NotMeasured, heldout, regression, validation
from evaluation.benchmarks.embedded import answering
from evaluation.benchmarks.registry import measured
from evaluation.judging.reports import NotMeasurable
from evaluation.reports.cost import Price
from evaluation.scorecard import Scorecard
from problems.dataset.evidence import CONTAMINATION, SUSPECTS, suspects_of
from problems.schema import read_parquet
from problems.sources.heldout import heldout_tasks
from resources.config.profile import HELDOUT
from resources.registry.regressions import RegressionSet
from resources.run_context import RunContext, StageContext, StageOutput, result
from resources.run_record import Champion


@dataclass(frozen=True)
class Scores:
    """All scorecards of one pipeline run, by contestant and benchmark; and what was not measured,
    with the reason.
    """

    challenger: dict[str, Scorecard]
    champion: dict[str, Scorecard]
    not_measured: dict[str, str]
    suspects: dict[str, list[str]]  # by source, from the contamination report at that time


@dg.asset(
    group_name=EVALUATION,
    kinds={"huggingface", "json"},
    owners=OWNERS[EVALUATION],
    deps=[checkpoint, benchmark_scores],
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
        contestants = contestants_of(stage)
        benchmarks, not_measured = benchmarks_of(stage)
        cards: dict[str, list[Artifact]] = {who: [] for who in contestants}
        for benchmark in benchmarks:
            try:
                pair = {
                    who: scored(stage, contestant, benchmark)
                    for who, contestant in contestants.items()
                }
            except NotMeasurable as error:
                not_measured[benchmark.name] = str(error)
                continue
            for who, artifact in pair.items():
                cards[who].append(artifact)
        report_cells(context, [artifact for artifacts in cards.values() for artifact in artifacts])

        def make(folder: Path) -> StageOutput:
            (folder / "not_measured.json").write_text(
                json.dumps(not_measured, indent=1), encoding="utf-8"
            )
            (folder / SUSPECTS).write_text(
                json.dumps(suspects_of(stage.store), indent=1), encoding="utf-8"
            )
            for who, artifacts in cards.items():
                for artifact in artifacts:
                    card = Scorecard.stored(artifact)
                    card.write(folder / f"{who}--{card.benchmark}.json")
            facts = {"draws": [draw.model_dump() for draw in stage.pipeline_run.record.draws]}
            return StageOutput(facts, content_hash=_together(cards))

        inputs = {
            f"{who}/{artifact.manifest.name}": artifact.content_hash
            for who, artifacts in cards.items()
            for artifact in artifacts
        }
        inputs |= reports_of(stage.store)
        made = stage.artifact(
            "scores",
            record.id,
            make,
            version=1,
            inputs=inputs,
            config={"not_measured": not_measured},
        )
        scores = read_scores(made)
        stage.report.say(
            ", ".join(
                f"{who} {100 * cards['heldout'].pass_at_1:.1f} %"
                for who, cards in sides(scores)
                if "heldout" in cards
            )
        )
    if record.kind != "chain":
        stage.pipeline_run.change(state="done")
    if record.kind == "evaluation":
        _report_checkpoint(context, stage)
    picture = scores_picture(
        [(who, card) for who, cards in sides(scores) for card in cards.values()]
    )
    both = sides(scores)
    price = Price(
        run_context.profile.evaluation.price_per_million_tokens, run_context.profile.price_per_hour
    )
    metadata = {
        "scores": dg.MetadataValue.md(
            scores_table(both, scores.not_measured, scores.suspects, price)
        ),
        "picture": dg.MetadataValue.md(picture),
        "failures": dg.MetadataValue.md(failures_table(both)),
        "quality": dg.MetadataValue.md(
            quality_table([card for _, cards in both for card in cards.values()])
        ),
        "heldout_tasks": ", ".join(
            f"{draw.first:,} to {draw.end - 1:,}" for draw in stage.pipeline_run.record.draws
        ),
    }
    return result(made, metadata)


@dg.asset_check(asset=contestant_scores, blocking=True)
def scores_are_sane(
    context: dg.AssetCheckExecutionContext, run_context: RunContext
) -> dg.AssetCheckResult:
    """Every task has a verdict, both sides saw the same tasks, and the reference solutions would
    score 100 %.
    """
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
            faults.append(f"{name}: champion and challenger were asked different tasks")
    return dg.AssetCheckResult(
        passed=not faults, metadata={"faults": dg.MetadataValue.json(faults)}
    )


def reports_of(store: Store) -> dict[str, str]:
    """Return the hashes of what says which tasks are suspect: the contamination report and the
    list; empty if there is none.
    """
    clean = store.current("datasets", "clean_problems")
    hashes = clean.manifest.facts.get("reports", {}) if clean else {}
    return {
        name: hashes[file]
        for name, file in (("contamination report", CONTAMINATION), ("suspects", SUSPECTS))
        if file in hashes
    }


def contestants_of(stage: StageContext) -> dict[str, Champion]:
    """Return who is scored: the challenger and the champion. A rescore and a quick validation have
    the champion alone.
    """
    record, champion = stage.pipeline_run.record, opponent(stage)
    if record.kind in ("rescore", "validation"):
        return {"champion": champion}
    made = stage.store.require("checkpoints", record.id)
    return {
        "champion": champion,
        "challenger": Champion(
            checkpoint=record.id, content_hash=made.content_hash, path=str(made.path)
        ),
    }


def _report_checkpoint(context: dg.AssetExecutionContext, stage: StageContext) -> None:
    """Report a manually added checkpoint, so that it is a partition like those of other runs."""
    made = stage.store.require("checkpoints", stage.pipeline_run.record.id)
    metadata: dict[str, Any] = {
        "put_by_hand": stage.pipeline_run.record.why,
        "content_hash": made.content_hash,
        "path": dg.MetadataValue.path(str(made.path)),
    }
    tags = {"dagster/data_version": made.content_hash}
    context.log_event(
        dg.AssetMaterialization(
            checkpoint.key, partition=stage.pipeline_run.record.id, metadata=metadata, tags=tags
        )
    )


def opponent(stage: StageContext) -> Champion:
    """Return the current champion, or the one that this run's recorded decision was made against;
    before there is one, the warmed-up model.
    """
    history, entry = stage.run_context.ledger.history(), stage.run_context.ledger.champion()
    decided = next(
        (
            e.decision
            for e in history
            if e.chain == stage.pipeline_run.record.id and e.decision.get("champion")
        ),
        None,
    )
    if decided:
        entry = next(e for e in history if e.checkpoint_hash == decided["champion"]["content_hash"])
    return (
        Champion(checkpoint=entry.checkpoint, content_hash=entry.checkpoint_hash, path=entry.path)
        if entry
        else start_of(stage)
    )


def benchmarks_of(stage: StageContext) -> tuple[list[Benchmark], dict[str, str]]:
    """Return validation, this run's held-out draw and the available public benchmarks; and name ->
    reason for those that are missing.
    """
    config, family = stage.profile.evaluation, stage.profile.family
    sampling = answering(stage.profile.training.answer_tokens)
    clean = read_parquet(
        stage.store.require("datasets", "clean_problems").path / "problems.parquet"
    )
    tuned_on = validation(clean, sampling)
    if stage.pipeline_run.record.kind == "validation":
        names = dict.fromkeys([HELDOUT, *(each.name for each in config.benchmarks)])
        return [tuned_on], dict.fromkeys(names, "left out: a quick validation")
    draw = stage.pipeline_run.draw(family.seed, config.heldout)
    drawn = heldout(heldout_tasks(family, draw.first, draw.count), sampling)
    asked = config.settings_of(HELDOUT)
    benchmarks: list[Benchmark] = [tuned_on, drawn.with_settings(asked) if asked else drawn]
    if lost := [
        row.as_problem()
        for row in RegressionSet(stage.run_context.home.regressions).read(
            stage.pipeline_run.record.number
        )
        if row.benchmark == "heldout"
    ]:
        # Lost tasks of the other benchmarks are part of those benchmarks.
        benchmarks.append(regression(lost, sampling))
    missing: dict[str, str] = {}
    for settings in config.benchmarks:
        if settings.name == HELDOUT:
            continue
        public = measured(settings, stage.run_context.home.path, config.hub)
        if isinstance(public, NotMeasured):
            missing[public.name] = public.reason
        else:
            benchmarks.append(public)
    return benchmarks, missing


def read_scores(bundle: Artifact) -> Scores:
    """Return a run's scorecards. Raises CorruptArtifact for one that was changed."""
    cards: dict[str, dict[str, Scorecard]] = {"challenger": {}, "champion": {}}
    for path in sorted(bundle.path.glob("*--*.json")):
        who, _, benchmark = path.stem.partition("--")
        card = cards[who][benchmark] = Scorecard.read(path)
        expected = bundle.manifest.inputs.get(f"{who}/{card.checkpoint}--{card.benchmark}")
        if expected and card.content_hash != expected:
            raise CorruptArtifact(
                f"{path}: its content is not that of its manifest: delete the folder, and evaluate "
                "again"
            )
    missing, listed = bundle.path / "not_measured.json", bundle.path / SUSPECTS
    return Scores(
        **cards,
        not_measured=json.loads(missing.read_text(encoding="utf-8")),
        suspects=json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else {},
    )


def sides(scores: Scores) -> list[tuple[str, dict[str, Scorecard]]]:
    """Return both contestants' scorecards by benchmark, the challenger first."""
    return [("challenger", scores.challenger), ("champion", scores.champion)]


def _together(cards: dict[str, list[Artifact]]) -> str:
    return hash_data(
        {who: [artifact.content_hash for artifact in artifacts] for who, artifacts in cards.items()}
    )
