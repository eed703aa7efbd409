"""The promotion decision on a challenger, recorded in the ledger with its reasons.

In: the run's scores and report. Out: a ledger entry, which MLflow's aliases follow.
"""

import json
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.integrity import CorruptArtifact
from artifacts.pull import pull, pull_champion
from assets.contestant_scores import Scores, read_scores
from assets.contestants import benchmarks_of, start_of
from assets.gate_facts import alpha_rows, gates_of
from assets.markdown import markdown
from assets.partitions import checkpoints
from assets.pictures import training_picture
from assets.report import decision_of, report
from assets.stages import asset_of
from evaluation.promotion.gate import Decision, decide
from evaluation.promotion.rate import points
from evaluation.promotion.regression import lost_tasks
from resources.cost import cost_line, run_cost
from resources.registry.ledger import Entry, Ledger
from resources.registry.mlflow import MODEL, Registry
from resources.registry.regressions import RegressionSet
from resources.retention import NOTHING_REMOVED, collecting
from resources.run_context import RunContext, StageContext

HISTORY = dg.TableSchema(
    [
        dg.TableColumn("entry", "int", "Number of the entry in the ledger"),
        dg.TableColumn("time", "string", "When it was recorded, in UTC"),
        dg.TableColumn("decision", "string", "install, promote, refuse or rollback"),
        dg.TableColumn("version", "int", "Version of the checkpoint; refused ones have one too"),
        dg.TableColumn("checkpoint", "string", "Checkpoint that the decision is about"),
    ]
)


@dg.asset(
    **asset_of("promoted_model"),
    kinds={"mlflow", "sqlite"},
    partitions_def=checkpoints,
)
def promoted_model(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The promotion decision on this run's challenger. The first warmed-up model is installed as
    version 1 without a comparison.
    """
    with run_context.stage(context, trains=False) as stage:
        entry = gate(stage)
        if sync_problem := run_context.mlflow.try_sync(run_context.ledger):
            context.log.warning(sync_problem)
        stage.report.created += 1
        stage.report.say(
            "promoted"
            if entry.kind == "promote"
            else "not promoted"
            if entry.kind == "refuse"
            else "installed"
        )
        stage.pipeline_run.change(state="done", decision=entry.kind, error="")
    if stage.pipeline_run.record.kind == "pipeline":
        # Write the report again, now with the ledger's version and all stages' minutes.
        report(stage, Decision.model_validate(entry.decision), entry.version)
    try:
        with collecting(run_context.home):
            run_context.collect()
    except (*NOTHING_REMOVED, OSError) as error:  # the decision stands
        context.log.warning(f"the clean-up after the decision failed: {error}")
    champion = run_context.ledger.champion()
    metadata: dict[str, Any] = {
        "headline": headline(entry),
        "curve": dg.MetadataValue.md(_curve(stage)),
        "decision": entry.kind,
        "version": entry.version,
        "reasons": dg.MetadataValue.md(
            "\n".join(f"- {reason}" for reason in entry.decision["reasons"])
        ),
        "champion": champion.checkpoint if champion else "none",
        "mlflow": sync_problem or registry_page(run_context.mlflow) or "in sync",
        "cost": cost_line(run_cost(run_context.as_settings, stage.pipeline_run.record)),
        "history": history_table(run_context.ledger),
        "alpha": dg.MetadataValue.md(alpha_table(run_context.ledger)),
    }
    return dg.MaterializeResult(
        metadata=metadata,
        data_version=dg.DataVersion(champion.checkpoint_hash if champion else "none"),
    )


def headline(entry: Entry) -> str:
    """Return the decision in one line: the share of solved tasks of champion and challenger."""
    decision = Decision.model_validate(entry.decision)
    before = f"{points(decision.comparison.before.share)} → " if decision.comparison else ""
    verdict = {"promote": "promoted", "refuse": "not promoted", "install": "installed"}[entry.kind]
    return (
        f"{before}{points(decision.score.share)} % of {decision.score.tasks} tasks of "
        f"{decision.policy.benchmark}: {verdict}"
    )


def _curve(stage: StageContext) -> str:
    """Return the curve of the challenger's training; a checkpoint that was added has none."""
    artifact = stage.store.require("checkpoints", stage.pipeline_run.record.id)
    file = artifact.path / "measured.json"
    if not file.exists():
        return "no training in this home"
    history = json.loads(file.read_text(encoding="utf-8"))
    return training_picture(history)


@dg.asset_check(asset=promoted_model, blocking=True)
def champion_is_whole(run_context: RunContext) -> dg.AssetCheckResult:
    """The champion's folder exists, and its hash is the one in the ledger."""
    from artifacts.hashing import hash_folder

    champion = run_context.ledger.champion()
    folder = pull(run_context.store, champion.path) if champion else Path()
    actual_hash = hash_folder(folder) if champion and folder.is_dir() else "missing"
    expected_hash = champion.checkpoint_hash if champion else "none"
    return dg.AssetCheckResult(
        passed=actual_hash == expected_hash,
        metadata={"hash_in_ledger": expected_hash, "hash_on_disk": actual_hash},
    )


def gate(stage: StageContext) -> Entry:
    """Decide on the run's challenger and record the decision.

    If there is no champion yet, the start policy is installed first.
    """
    ledger, record = stage.run_context.ledger, stage.pipeline_run.record
    stage.check_lease()
    verify_evidence(stage)
    scores = read_scores(stage.store.require("scores", record.id))
    if ledger.champion() is None:
        first = scores.champion[stage.profile.policy.benchmark]
        installed = decide(None, first, stage.profile.policy)
        _append(ledger, installed, path=start_of(stage).path, run_id=f"{record.id}/first")
    decision = decision_of(scores, stage)
    path = str(stage.store.require("checkpoints", record.id).path)
    stage.check_lease()
    entry = _append(ledger, decision, path=path, run_id=record.id)
    if entry.kind == "promote":
        record_lost_tasks(stage, scores)
    return entry


def verify_evidence(stage: StageContext) -> None:
    """Verify the hashes of all artifacts behind the decision.

    These are scores, weights, and the training data with its contamination report. Raises
    CorruptArtifact before anything is decided.
    """
    store, run_id = stage.store, stage.pipeline_run.record.id
    bundle = store.require("scores", run_id)
    cards = [
        (name.partition("/")[2], content)
        for name, content in bundle.manifest.inputs.items()
        if name.startswith(("challenger/", "champion/"))
    ]
    for name, content in cards:
        card = next(
            (each for each in store.versions("scores", name) if each.content_hash == content), None
        )
        if card is None:
            raise CorruptArtifact(
                f"{bundle.path}: the scorecard {name} {content[:12]} that it compares is missing: "
                "delete the folder, and evaluate again"
            )
        store.verify(card)
    artifacts = [bundle, store.require("checkpoints", run_id)]
    if clean := store.current("datasets", "clean_problems"):
        artifacts.append(clean)
    for artifact in artifacts:
        store.verify(artifact)
    if champion := stage.run_context.ledger.champion():
        pull_champion(store, champion.path, champion.checkpoint_hash)
    else:
        start = start_of(stage)
        pull_champion(store, start.path, start.content_hash)


def record_lost_tasks(stage: StageContext, scores: Scores) -> int:
    """Store the tasks that the old champion solved and the new one does not, for later gates.

    Returns how many are new; a repeated call adds none.
    """
    record = stage.pipeline_run.record
    benchmarks = {benchmark.name: benchmark for benchmark in benchmarks_of(stage)[0]}
    new_count = 0
    for name, after in scores.challenger.items():
        if (
            name in ("validation", "regression")
            or name not in scores.champion
            or name not in benchmarks
        ):
            continue
        before = scores.champion[name]
        problems = {problem.problem_id: problem for problem in benchmarks[name].problems}
        lost = [problems[task] for task in lost_tasks(before, after) if task in problems]
        regression_set = RegressionSet(stage.run_context.home.regressions)
        new_count += len(
            regression_set.remember(
                lost,
                benchmark=name,
                solved_by=before.checkpoint,
                lost_by=after.checkpoint,
                run_id=record.id,
                number=record.number,
            )
        )
    return new_count


def registry_page(registry: Registry) -> dg.MetadataValue[str] | None:
    """Return the address of the registered model on an MLflow server, None for a file."""
    return dg.MetadataValue.url(f"{registry.server}/#/models/{MODEL}") if registry.server else None


def history_table(ledger: Ledger) -> dg.TableMetadataValue:
    """Return the ledger's entries, newest first. Each run's page has its reasons."""
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "entry": entry.entry,
                    "time": entry.created_at[:16].replace("T", " "),
                    "decision": entry.kind,
                    "version": entry.version,
                    "checkpoint": entry.checkpoint,
                }
            )
            for entry in reversed(ledger.history())
        ],
        HISTORY,
    )


def alpha_table(ledger: Ledger) -> str:
    """Return a table of the gates, newest first, with each one's share of alpha and its result."""
    rows = alpha_rows(gates_of(ledger.history()))
    return (
        markdown(("gate", "benchmark", "level", "p", "gain", "levels so far"), rows)
        if rows
        else "no promotion has been tested yet"
    )


def _append(ledger: Ledger, decision: Decision, *, path: str, run_id: str) -> Entry:
    return ledger.append(
        decision.kind,
        checkpoint=decision.challenger.name,
        checkpoint_hash=decision.challenger.content_hash,
        path=path,
        decision=decision.model_dump(mode="json"),
        run_id=run_id,
        against=decision.champion.content_hash if decision.champion else None,
    )
