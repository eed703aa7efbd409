"""The decision: champion against challenger, judged by statistics, stored as one record with its
reasons; the registry's aliases follow it.
"""

from pathlib import Path
from typing import Any

import dagster as dg

from assets.difficulty_rankings import start_of
from assets.evaluation import Scores, benchmark_scores, benchmarks_of, leaderboard, read_scores
from assets.gate_facts import gates_of, spent_rows
from assets.partitions import OWNERS, PROMOTION, checkpoints
from assets.report import decision_of, report, training_report
from assets.tables import markdown
from evaluation.promotion.gate import Decision, decide
from evaluation.promotion.regression import lost_tasks
from resources.registry.ledger import Entry, Ledger
from resources.registry.regressions import RegressionSet
from resources.run_context import Bench, Workshop


@dg.asset(
    group_name=PROMOTION,
    kinds={"mlflow", "sqlite"},
    owners=OWNERS[PROMOTION],
    deps=[benchmark_scores, leaderboard, training_report],
    partitions_def=checkpoints,
)
def promoted_model(context: dg.AssetExecutionContext, workshop: Workshop) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """The gate's decision on this run's challenger. The very first warmed-up model is installed as
    version 1, which shows no improvement.
    """
    with workshop.bench(context, trains=False) as bench:
        entry = gate(bench)
        if behind := workshop.registry.follow(workshop.ledger):
            context.log.warning(behind)
        bench.stage.made += 1
        bench.stage.say(
            "promoted"
            if entry.kind == "promote"
            else "not promoted"
            if entry.kind == "refuse"
            else "installed"
        )
        bench.chain.change(state="done", decision=entry.kind, error="")
    if bench.chain.record.kind == "chain":
        # Write the report again, now with the ledger's version and all stages' minutes.
        report(bench, Decision.model_validate(entry.decision), entry.version)
    champion = workshop.ledger.champion()
    metadata: dict[str, Any] = {
        "decision": entry.kind,
        "version": entry.version,
        "reasons": dg.MetadataValue.md(
            "\n".join(f"- {reason}" for reason in entry.decision["reasons"])
        ),
        "champion": champion.checkpoint if champion else "none",
        "mlflow": behind or "says the same",
        "history": dg.MetadataValue.md(history_table(workshop.ledger)),
        "alpha": dg.MetadataValue.md(alpha_table(workshop.ledger)),
    }
    return dg.MaterializeResult(
        metadata=metadata,
        data_version=dg.DataVersion(champion.checkpoint_hash if champion else "none"),
    )


@dg.asset_check(asset=promoted_model, blocking=True)
def champion_is_whole(workshop: Workshop) -> dg.AssetCheckResult:
    """The champion that the ledger names exists, and its bytes are those that were judged."""
    from artifacts.hashing import hash_folder

    champion = workshop.ledger.champion()
    found = (
        hash_folder(Path(champion.path)) if champion and Path(champion.path).is_dir() else "missing"
    )
    wanted = champion.checkpoint_hash if champion else "none"
    return dg.AssetCheckResult(
        passed=found == wanted, metadata={"ledger_says": wanted, "on_disk": found}
    )


def gate(bench: Bench) -> Entry:
    """Decide and record, once for each run. The first champion is installed before its first
    challenger is judged.
    """
    ledger, record = bench.workshop.ledger, bench.chain.record
    scores = read_scores(bench.store.require("scores", record.id))
    if ledger.champion() is None:
        first = scores.champion[bench.profile.policy.benchmark]
        installed = decide(None, first, bench.profile.policy)
        _append(ledger, installed, path=start_of(bench).path, chain=f"{record.id}/first")
    decision = decision_of(scores, bench)
    path = str(bench.store.require("checkpoints", record.id).path)
    entry = _append(ledger, decision, path=path, chain=record.id)
    if entry.kind == "promote":
        remember_lost(bench, scores)
    return entry


def remember_lost(bench: Bench, scores: Scores) -> int:
    """Keep the tasks that the old champion solved and the new one does not, for the next gates;
    return how many are new. Repeatable.
    """
    record, known = (
        bench.chain.record,
        {benchmark.name: benchmark for benchmark in benchmarks_of(bench)[0]},
    )
    new = 0
    for name, after in scores.challenger.items():
        if name in ("validation", "regression") or name not in scores.champion or name not in known:
            continue
        before, problems = (
            scores.champion[name],
            {problem.problem_id: problem for problem in known[name].problems},
        )
        lost = [problems[task] for task in lost_tasks(before, after) if task in problems]
        kept = RegressionSet(bench.workshop.home.regressions)
        new += len(
            kept.remember(
                lost,
                benchmark=name,
                solved_by=before.checkpoint,
                lost_by=after.checkpoint,
                chain=record.id,
                number=record.number,
            )
        )
    return new


def history_table(ledger: Ledger) -> str:
    rows = [
        (
            e.entry,
            e.created_at,
            e.kind,
            f"version {e.version}",
            e.checkpoint,
            e.decision["reasons"][0],
        )
        for e in reversed(ledger.history())
    ]
    return markdown(("entry", "when", "what", "version", "checkpoint", "first reason"), rows)


def alpha_table(ledger: Ledger) -> str:
    """Return a table of the gates, newest first, with each one's share of alpha and its result."""
    rows = spent_rows(gates_of(ledger.history()))
    return (
        markdown(("gate", "benchmark", "level", "p", "gain", "levels so far"), rows)
        if rows
        else "no gate has tested anything yet"
    )


def _append(ledger: Ledger, decision: Decision, *, path: str, chain: str) -> Entry:
    return ledger.append(
        decision.kind,
        checkpoint=decision.challenger.name,
        checkpoint_hash=decision.challenger.content_hash,
        path=path,
        decision=decision.model_dump(mode="json"),
        chain=chain,
        against=decision.champion.content_hash if decision.champion else None,
    )
