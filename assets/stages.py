"""The one table of stages: title, kind of artifact, what each stage needs, and which ones remove.

Readers: the assets, the live view, the report, `ratchet status` and `ratchet data show`. Without
Dagster, so that the command line starts quickly.
"""

from __future__ import annotations

from typing import TypedDict

from resources.stage import PipelineStage

DATASETS, CHECKPOINTS, SCORES, REPORTS = "datasets", "checkpoints", "scores", "reports"
DATA, MODELS, EVALUATION, PROMOTION = "data", "models", "evaluation", "promotion"
OWNERS = {
    DATA: ["team:data"],
    MODELS: ["team:training"],
    EVALUATION: ["team:evaluation"],
    PROMOTION: ["team:evaluation"],
}
TABLE = (
    PipelineStage(
        "raw_problems", "problems read", DATASETS, DATA, ("problem_sources",), removes=True
    ),
    PipelineStage(
        "verified_problems",
        "solutions and tests run in the sandbox",
        DATASETS,
        DATA,
        ("raw_problems",),
        removes=True,
    ),
    PipelineStage(
        "augmented_problems",
        "variants of verified problems",
        DATASETS,
        DATA,
        ("verified_problems",),
        removes=True,
    ),
    PipelineStage(
        "synthetic_problems",
        "problems proposed by a model",
        DATASETS,
        DATA,
        ("verified_problems",),
        removes=True,
    ),
    PipelineStage(
        "clean_problems",
        "duplicates, leaks and secrets removed",
        DATASETS,
        DATA,
        ("verified_problems", "augmented_problems", "synthetic_problems"),
        removes=True,
    ),
    PipelineStage("base_model", "base model", CHECKPOINTS, MODELS, ("clean_problems",)),
    PipelineStage(
        "sft_checkpoint",
        "warm-up on demonstrations",
        CHECKPOINTS,
        MODELS,
        ("base_model", "clean_problems"),
    ),
    PipelineStage(
        "difficulty_rankings",
        "difficulty of the problems measured",
        DATASETS,
        MODELS,
        ("clean_problems", "sft_checkpoint"),
    ),
    PipelineStage(
        "checkpoint",
        "reinforcement learning with verl",
        CHECKPOINTS,
        MODELS,
        ("clean_problems", "difficulty_rankings", "sft_checkpoint"),
    ),
    PipelineStage("benchmark_scores", "one cell of scores", SCORES, EVALUATION, ("checkpoint",)),
    PipelineStage(
        "contestant_scores",
        "champion and challenger scored",
        SCORES,
        EVALUATION,
        ("checkpoint", "benchmark_scores"),
    ),
    PipelineStage("leaderboard", "leaderboard", REPORTS, EVALUATION, ("contestant_scores",)),
    PipelineStage(
        "training_report", "report", "", EVALUATION, ("contestant_scores", "leaderboard")
    ),
    PipelineStage(
        "promoted_model",
        "decision",
        "",
        PROMOTION,
        ("contestant_scores", "leaderboard", "training_report"),
    ),
    PipelineStage("deployment", "version in front of users", "", PROMOTION, ("promoted_model",)),
    # A part of `checkpoint` that is stored for itself.
    PipelineStage("training_rows", "problems as verl reads them", DATASETS, MODELS),
)
STAGES = {stage.name: stage for stage in TABLE}
PREPARING = tuple(stage.name for stage in TABLE if stage.group == DATA)
# A pipeline run, from raw problems to a decision: a cell is scored within `contestant_scores`.
RUN = tuple(
    stage.name
    for stage in TABLE[: TABLE.index(STAGES["promoted_model"]) + 1]
    if stage.name != "benchmark_scores"
)


class AssetArguments(TypedDict):
    """What the table gives `@dg.asset`."""

    group_name: str
    owners: list[str]
    deps: list[str]
    code_version: str | None


def asset_of(name: str) -> AssetArguments:
    stage = STAGES[name]
    return AssetArguments(
        group_name=stage.group,
        owners=OWNERS[stage.group],
        deps=list(stage.after),
        code_version=stage.code[:12] if stage.kind else None,
    )
