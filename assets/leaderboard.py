"""The leaderboard of all scores. In: the stored scorecards. Out: one table."""

import json
from pathlib import Path

import dagster as dg

from artifacts.store import Artifact, Store
from assets.contestant_scores import read_scores, sides
from assets.markdown import markdown
from assets.score_tables import FULL_AND_CLEAN, full_and_clean
from assets.stages import STAGES, asset_of
from evaluation.reports.figures import Suspects
from evaluation.scorecard import Scorecard
from resources.run_context import RunContext, StageOutput, result


@dg.asset(
    **asset_of("leaderboard"),
    kinds={"markdown"},
)
def leaderboard(context: dg.AssetExecutionContext, run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Every score, newest run first. Held-out draws differ between runs: compare within one."""
    with run_context.stage(context, trains=False) as stage:
        names = [name for name in stage.store.names("scores") if "--" not in name]
        bundles = [artifact for name in names if (artifact := stage.store.current("scores", name))]
        cells = _separate_cells(stage.store, bundles)
        rows = [
            row
            for artifact in sorted(
                [*bundles, *cells], key=lambda each: each.manifest.created_at, reverse=True
            )
            for row in (_cell_rows(artifact) if artifact in cells else _bundle_rows(artifact))
        ]

        def make(folder: Path) -> StageOutput:
            (folder / "leaderboard.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
            (folder / "leaderboard.md").write_text(_board(rows), encoding="utf-8")
            return StageOutput({"scores": len(rows)})

        inputs = {artifact.manifest.name: artifact.content_hash for artifact in [*bundles, *cells]}
        board = stage.artifact(STAGES["leaderboard"], make, inputs=inputs, config={})
        stage.report.say(f"{len(rows)} scores")
    return result(
        board,
        {"leaderboard": dg.MetadataValue.md(_board(rows[:40])), "dagster/row_count": len(rows)},
    )


def _separate_cells(store: Store, bundles: list[Artifact]) -> list[Artifact]:
    """Return the cells that belong to no pipeline run's scores."""
    in_bundles = {content for bundle in bundles for content in bundle.manifest.inputs.values()}
    cells = [
        artifact
        for name in store.names("scores")
        if "--" in name and (artifact := store.current("scores", name))
    ]
    return [each for each in cells if each.content_hash not in in_bundles]


def _cell_rows(cell: Artifact) -> list[dict[str, object]]:
    return [_row("", "", Scorecard.stored(cell), {}, cell.manifest.created_at)]


def _bundle_rows(bundle: Artifact) -> list[dict[str, object]]:
    scores = read_scores(bundle)
    return [
        _row(bundle.manifest.name, side, card, scores.suspects, bundle.manifest.created_at)
        for side, cards in sides(scores)
        for card in cards.values()
    ]


def _row(
    run: str, side: str, card: Scorecard, suspects: Suspects, created_at: str
) -> dict[str, object]:
    names = {
        "run_id": run,
        "who": side,
        "checkpoint": card.checkpoint,
        "benchmark": card.benchmark,
        "n": card.sampling.get("n", 1),
        "temperature": card.sampling.get("temperature", 0.0),
        "prompt": "upstream" if card.sampling.get("stop") else "chat",
    }
    figures = dict(zip(FULL_AND_CLEAN, full_and_clean(card, suspects), strict=True))
    counts = {"tasks": len(card.first), "pass_at_1": card.pass_at_1, "made_at": created_at}
    return names | figures | counts


def _board(rows: list[dict[str, object]]) -> str:
    keys = (
        "run_id",
        "who",
        "checkpoint",
        "benchmark",
        "n",
        "temperature",
        "prompt",
        *FULL_AND_CLEAN,
        "tasks",
    )
    head = ("run", "model", *keys[2:])
    return markdown(head, [[row[key] for key in keys] for row in rows])
