"""The leaderboard of all scores. In: the stored scorecards. Out: one table."""

import json
from pathlib import Path

import dagster as dg

from artifacts.store import Artifact, Store
from assets.contestant_scores import contestant_scores, read_scores, sides
from assets.partitions import EVALUATION, OWNERS
from assets.score_tables import FULL_AND_CLEAN, full_and_clean
from assets.tables import markdown
from evaluation.reports.figures import Suspects
from evaluation.scorecard import Scorecard
from resources.run_context import RunContext, StageOutput, result


@dg.asset(
    group_name=EVALUATION, kinds={"markdown"}, owners=OWNERS[EVALUATION], deps=[contestant_scores]
)
def leaderboard(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Every score, newest run first. Held-out draws differ between runs: compare within one."""
    with run_context.stage(context, trains=False) as stage:
        names = [name for name in stage.store.names("scores") if "--" not in name]
        bundles = [artifact for name in names if (artifact := stage.store.current("scores", name))]
        alone = _alone(stage.store, bundles)
        rows = [
            row
            for artifact in sorted(
                [*bundles, *alone], key=lambda each: each.manifest.created_at, reverse=True
            )
            for row in (_row(artifact) if artifact in alone else _rows(artifact))
        ]

        def make(folder: Path) -> StageOutput:
            (folder / "leaderboard.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
            (folder / "leaderboard.md").write_text(_board(rows), encoding="utf-8")
            return StageOutput({"scores": len(rows)})

        inputs = {bundle.manifest.name: bundle.content_hash for bundle in [*bundles, *alone]}
        made = stage.artifact("reports", "leaderboard", make, version=1, inputs=inputs, config={})
        stage.report.say(f"{len(rows)} scores")
    return result(
        made,
        {"leaderboard": dg.MetadataValue.md(_board(rows[:40])), "dagster/row_count": len(rows)},
    )


def _alone(store: Store, bundles: list[Artifact]) -> list[Artifact]:
    """Return the scorecards that no pipeline run compares: cells that were scored alone."""
    compared = {content for bundle in bundles for content in bundle.manifest.inputs.values()}
    cells = [
        artifact
        for name in store.names("scores")
        if "--" in name and (artifact := store.current("scores", name))
    ]
    return [each for each in cells if each.content_hash not in compared]


def _row(artifact: Artifact) -> list[dict[str, object]]:
    return [_scored("", "", Scorecard.stored(artifact), {}, artifact.manifest.created_at)]


def _rows(bundle: Artifact) -> list[dict[str, object]]:
    scores = read_scores(bundle)
    return [
        _scored(bundle.manifest.name, who, card, scores.suspects, bundle.manifest.created_at)
        for who, cards in sides(scores)
        for card in cards.values()
    ]


def _scored(
    run: str, who: str, card: Scorecard, suspects: Suspects, made_at: str
) -> dict[str, object]:
    named = {
        "chain": run,
        "who": who,
        "checkpoint": card.checkpoint,
        "benchmark": card.benchmark,
        "n": card.sampling.get("n", 1),
    }
    figures = dict(zip(FULL_AND_CLEAN, full_and_clean(card, suspects), strict=True))
    measured = {"tasks": len(card.first), "pass_at_1": card.pass_at_1, "made_at": made_at}
    return named | figures | measured


def _board(rows: list[dict[str, object]]) -> str:
    head = ("chain", "who", "checkpoint", "benchmark", "n", *FULL_AND_CLEAN, "tasks")
    return markdown(head, [[row[key] for key in head] for row in rows])
