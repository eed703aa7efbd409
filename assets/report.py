"""The report: one self-contained HTML file to share, and the same facts in summary.json."""

import json
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.integrity import reading
from assets.contestant_scores import Scores, read_scores
from assets.gate_facts import facts_of
from assets.markdown import markdown
from assets.partitions import checkpoints
from assets.report_facts import report_facts
from assets.stages import asset_of
from evaluation.promotion.gate import Decision, decide
from evaluation.reports.report import write_report
from resources.config.load import ProfileError
from resources.run_context import RunContext, StageContext


@dg.asset(
    **asset_of("training_report"),
    kinds={"html"},
    partitions_def=checkpoints,
)
def training_report(
    context: dg.AssetExecutionContext, run_context: RunContext
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """One HTML page: data, training curves, scores before and after, examples, the decision's
    reasons, provenance, and missing measurements.
    """
    with run_context.stage(context, trains=False) as stage:
        decision = decision_of(
            read_scores(stage.store.require("scores", stage.pipeline_run.record.id)), stage
        )
        page = report(stage, decision)
        stage.report.created += 1
        stage.report.say(str(page))
    metadata = {
        "report": dg.MetadataValue.path(str(page)),
        "reasons": dg.MetadataValue.md("\n".join(f"- {reason}" for reason in decision.reasons)),
    }
    summary = page.with_name("summary.json")
    with reading(summary, "materialize training_report again"):
        metadata |= _figures(json.loads(summary.read_text(encoding="utf-8")))
    return dg.MaterializeResult(
        metadata=metadata, data_version=dg.DataVersion(decision.content_hash)
    )


def _figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the report's summary for the asset's page."""
    rows = [
        (
            row["name"],
            *(_score_text(row, side) for side in ("champion", "challenger")),
            "" if row["left_out"] is None else row["left_out"],
        )
        for row in summary["benchmarks"]
    ]
    scores = markdown(("benchmark", "champion", "challenger", "suspect tasks"), rows)
    efforts = [
        (
            row["what"],
            *(
                "not counted" if row[key] is None else f"{row[key]:,.0f}"
                for key in ("seconds", "tokens")
            ),
        )
        for row in summary["effort"]
    ]
    comparison = summary["decision"]["comparison"] or {"won": (), "lost": ()}
    return {
        "headline": summary["headline"],
        "gain": summary["gain"],
        "tasks_won": len(comparison["won"]),
        "tasks_lost": len(comparison["lost"]),
        "benchmarks": dg.MetadataValue.md(scores),
        "spent": dg.MetadataValue.md(markdown(("step", "seconds", "tokens"), efforts)),
        "minutes": summary["minutes"],
        "not_measured": dg.MetadataValue.json(
            {row["name"]: row["reason"] for row in summary["not_measured"]}
        ),
    }


def _score_text(row: dict[str, Any], side: str) -> str:
    """Return a benchmark's score as text; with suspect tasks, also the score without them."""
    if row[side] is None:
        return "not measured"
    clean = row[f"{side}_clean"]
    return f"{100 * row[side]['share']:.1f} %" + (
        f", clean {100 * clean['share']:.1f} %" if row["left_out"] and clean else ""
    )


def decision_of(scores: Scores, stage: StageContext) -> Decision:
    """Return the promotion decision by the scorecards, the recorded facts and the policy.

    Report and gate call it, so they agree. Raises ProfileError if the policy's benchmark has no
    scores.
    """
    policy = stage.profile.policy
    if policy.benchmark not in scores.challenger or policy.benchmark not in scores.champion:
        reason = scores.not_measured.get(
            policy.benchmark, f"only {', '.join(scores.challenger)} were run"
        )
        raise ProfileError(f"policy.benchmark: {policy.benchmark} has no scores: {reason}")
    both = [
        name
        for name in scores.challenger
        if name not in (policy.benchmark, "validation") and name in scores.champion
    ]
    others = [(scores.champion[name], scores.challenger[name]) for name in both]
    gated = scores.challenger[policy.benchmark]
    facts = facts_of(stage, gated, scores.challenger.values())
    return decide(scores.champion[policy.benchmark], gated, policy, others, facts)


def report(stage: StageContext, decision: Decision, version: int | None = None) -> Path:
    """Write the pipeline run's report atomically, and return the page's path."""
    facts = report_facts(stage, decision, version)
    return write_report(facts, stage.run_context.home.reports / stage.pipeline_run.record.id)
