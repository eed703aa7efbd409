"""Scores: what a checkpoint solves. In: the run's challenger and its opponent. Out: scorecards, and
a leaderboard of all.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.hashing import hash_data
from artifacts.store import Artifact, Store
from assets.checkpoint import checkpoint
from assets.difficulty_rankings import start_of
from assets.partitions import EVALUATION, OWNERS, checkpoints
from assets.pictures import scores_picture
from assets.score_tables import (
    FULL_AND_CLEAN,
    failures_table,
    full_and_clean,
    quality_table,
    scores_table,
)
from assets.tables import markdown
from assets.verified_reward import unverified_by
from evaluation.benchmarks import Benchmark, NotMeasured, heldout, regression, validation
from evaluation.benchmarks.embedded import answering
from evaluation.benchmarks.registry import in_pipeline, load_public
from evaluation.evaluate import evaluate
from evaluation.judging.scoring import harness_version
from evaluation.reports.cost import Price
from evaluation.scorecard import Scorecard
from problems.catalogue import read_sources
from problems.dataset.evidence import CONTAMINATION, SUSPECTS, suspects_of
from problems.schema import read_parquet
from problems.sources.compositional import heldout_draw
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
    deps=[checkpoint],
    partitions_def=checkpoints,
)
def benchmark_scores(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Challenger and champion on validation, on a held-out draw that no gate has used, and on the
    public benchmarks that are installed.
    """
    with run_context.stage(context, trains=False) as stage:
        record = stage.pipeline_run.record
        contestants = contestants_of(stage)
        benchmarks, not_measured = benchmarks_of(stage)
        cards = {
            who: [_scored(stage, champion, benchmark) for benchmark in benchmarks]
            for who, champion in contestants.items()
        }

        def make(folder: Path) -> StageOutput:
            (folder / "not_measured.json").write_text(
                json.dumps(not_measured, indent=1), encoding="utf-8"
            )
            (folder / SUSPECTS).write_text(
                json.dumps(suspects_of(stage.store), indent=1), encoding="utf-8"
            )
            for who, artifacts in cards.items():
                for artifact in artifacts:
                    card = read_card(artifact)
                    card.write(folder / f"{who}--{card.benchmark}.json")
            return StageOutput({"draw": record.number}, content_hash=_together(cards))

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
                for who, cards in _sides(scores)
                if "heldout" in cards
            )
        )
    if record.kind != "chain":
        stage.pipeline_run.change(state="done")
    if record.kind == "evaluation":
        _report_checkpoint(context, stage)
    picture = scores_picture(
        [(who, card) for who, cards in _sides(scores) for card in cards.values()]
    )
    sides = _sides(scores)
    price = Price(
        run_context.profile.evaluation.price_per_million_tokens, run_context.profile.price_per_hour
    )
    metadata = {
        "scores": dg.MetadataValue.md(
            scores_table(sides, scores.not_measured, scores.suspects, price)
        ),
        "picture": dg.MetadataValue.md(picture),
        "failures": dg.MetadataValue.md(failures_table(sides)),
        "quality": dg.MetadataValue.md(
            quality_table([card for _, cards in sides for card in cards.values()])
        ),
        "heldout_draw": record.number,
    }
    return result(made, metadata)


@dg.asset_check(asset=benchmark_scores, blocking=True)
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


@dg.asset(
    group_name=EVALUATION, kinds={"markdown"}, owners=OWNERS[EVALUATION], deps=[benchmark_scores]
)
def leaderboard(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Every score, newest run first. Held-out draws differ between runs: compare within one."""
    with run_context.stage(context, trains=False) as stage:
        names = [name for name in stage.store.names("scores") if "--" not in name]
        bundles = [artifact for name in names if (artifact := stage.store.current("scores", name))]
        rows = [
            row
            for bundle in sorted(bundles, key=lambda b: b.manifest.created_at, reverse=True)
            for row in _rows(bundle)
        ]

        def make(folder: Path) -> StageOutput:
            (folder / "leaderboard.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
            (folder / "leaderboard.md").write_text(_board(rows), encoding="utf-8")
            return StageOutput({"scores": len(rows)})

        inputs = {bundle.manifest.name: bundle.content_hash for bundle in bundles}
        made = stage.artifact("reports", "leaderboard", make, version=1, inputs=inputs, config={})
        stage.report.say(f"{len(rows)} scores")
    return result(
        made,
        {"leaderboard": dg.MetadataValue.md(_board(rows[:40])), "dagster/row_count": len(rows)},
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
        return [tuned_on], dict.fromkeys(
            ("heldout", *in_pipeline()), "left out: a quick validation"
        )
    benchmarks: list[Benchmark] = [
        tuned_on,
        heldout(heldout_draw(family, stage.pipeline_run.record.number, config.heldout), sampling),
    ]
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
    paths = read_sources(stage.run_context.home.path)
    for name in in_pipeline():
        if name not in config.benchmarks:
            missing[name] = "left out by the profile (evaluation.benchmarks)"
            continue
        hub = config.hub or name in paths
        public = load_public(name, paths.get(name), stage.run_context.home.path, hub)
        if isinstance(public, NotMeasured):
            missing[name] = public.reason
        else:
            benchmarks.append(public)
    return benchmarks, missing


def read_scores(bundle: Artifact) -> Scores:
    cards = {path.stem: Scorecard.read(path) for path in sorted(bundle.path.glob("*--*.json"))}
    sides = {
        who: {
            stem.split("--")[1]: card for stem, card in cards.items() if stem.startswith(f"{who}--")
        }
        for who in ("challenger", "champion")
    }
    missing, listed = bundle.path / "not_measured.json", bundle.path / SUSPECTS
    suspects = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else {}
    return Scores(
        **sides, not_measured=json.loads(missing.read_text(encoding="utf-8")), suspects=suspects
    )


def read_card(artifact: Artifact) -> Scorecard:
    return Scorecard.read(artifact.path / "scorecard.json")


def _scored(stage: StageContext, contestant: Champion, benchmark: Benchmark) -> Artifact:
    """Return one scorecard; from the store if these weights have one for this benchmark."""
    inputs = {"checkpoint": contestant.content_hash, "benchmark": benchmark.version}
    config = {
        "sampling": benchmark.sampling.model_dump(mode="json"),
        "harness": harness_version(benchmark.harness),
    }

    def make(folder: Path) -> StageOutput:
        def on_progress(step: str, done: int, total: int) -> None:
            stage.report.progress.at(
                done, total, f"{contestant.checkpoint} on {benchmark.name}: {step}"
            )

        with stage.run_context.sandbox() as sandbox:
            card = evaluate(
                Path(contestant.path),
                contestant.checkpoint,
                contestant.content_hash,
                benchmark,
                sandbox,
                on_progress,
                stage.run_context.home.path / "answers",
            )
        card.write(folder / "scorecard.json")
        known = stage.store.current("checkpoints", contestant.checkpoint)
        stamps = (
            {"unverified": tainted} if known and (tainted := unverified_by(known.manifest)) else {}
        )
        return StageOutput(
            {"pass_at_1": card.pass_at_1, "tasks": len(card.solved)} | stamps,
            content_hash=card.content_hash,
            isolation=card.isolation,
        )

    return stage.artifact(
        "scores",
        f"{contestant.checkpoint}--{benchmark.name}",
        make,
        version=1,
        inputs=inputs,
        config=config,
    )


def _rows(bundle: Artifact) -> list[dict[str, object]]:
    scores = read_scores(bundle)
    made = []
    for who, cards in _sides(scores):
        for name, card in cards.items():
            named = {
                "chain": bundle.manifest.name,
                "who": who,
                "checkpoint": card.checkpoint,
                "benchmark": name,
            }
            told = dict(zip(FULL_AND_CLEAN, full_and_clean(card, scores.suspects), strict=True))
            made.append(
                named
                | told
                | {
                    "tasks": len(card.first),
                    "pass_at_1": card.pass_at_1,
                    "made_at": bundle.manifest.created_at,
                }
            )
    return made


def _board(rows: list[dict[str, object]]) -> str:
    head = ("chain", "who", "checkpoint", "benchmark", *FULL_AND_CLEAN, "tasks")
    return markdown(head, [[row[key] for key in head] for row in rows])


def _sides(scores: Scores) -> list[tuple[str, dict[str, Scorecard]]]:
    return [("challenger", scores.challenger), ("champion", scores.champion)]


def _together(cards: dict[str, list[Artifact]]) -> str:
    return hash_data(
        {who: [artifact.content_hash for artifact in artifacts] for who, artifacts in cards.items()}
    )
