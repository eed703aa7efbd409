"""A checkpoint is scored on one benchmark; the cell and the pipeline run share the scorecard."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from artifacts.store import Artifact
from pipelines.definitions import defs
from resources.run_context import RunContext
from resources.settings import Settings
from tests.pipelines.home_builder import HomeBuilder
from tests.pipelines.test_stale_scores import cleaned


@pytest.fixture
def kitchen(tmp_path: Path) -> Path:
    """Write a benchmark of two tasks as a YAML file."""
    rows = [
        {
            "problem_id": str(number),
            "statement": f"Return x plus {number}.",
            "entry_point": "solve",
            "style": "call",
            "tests": [{"args": [1], "expected": 1 + number}, {"args": [5], "expected": 5 + number}],
            "solutions": [f"def solve(x):\n    return x + {number}"],
        }
        for number in (1, 2)
    ]
    (tmp_path / "kitchen.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    file = tmp_path / "kitchen.yaml"
    file.write_text("name: kitchen\ndata: kitchen.jsonl\nmax_new_tokens: 8\n", encoding="utf-8")
    return file


@pytest.fixture
def champion(home_builder: HomeBuilder) -> Artifact:
    """Make a tiny model with real weights the champion."""
    cleaned(home_builder, 6, "one")
    return home_builder.tiny_champion(["return x plus one"] * 8)


def resources_of(home_builder: HomeBuilder, kitchen: Path, *changes: str) -> dict[str, object]:
    entry = f"{{name: {kitchen}, n: 2, temperature: 0.8}}"
    run_context = RunContext.of(
        Settings(
            home_builder.run_context.home, "small", (f"evaluation.benchmarks=[{entry}]", *changes)
        )
    )
    return run_context.resources | {"io_manager": dg.mem_io_manager}


@pytest.mark.slow
def test_one_cell_is_scored_and_on_the_leaderboard(
    champion: Artifact, home_builder: HomeBuilder, instance: dg.DagsterInstance, kitchen: Path
) -> None:
    instance.add_dynamic_partitions("checkpoints", ["tiny"])
    instance.add_dynamic_partitions("benchmarks", ["kitchen"])
    ended = defs.resolve_job_def("score_benchmark").execute_in_process(
        instance=instance,
        partition_key=dg.MultiPartitionKey({"checkpoint": "tiny", "benchmark": "kitchen"}),
        resources=resources_of(home_builder, kitchen),
    )
    assert ended.success
    artifact = home_builder.run_context.store.require("scores", "tiny--kitchen")
    assert artifact.manifest.inputs["checkpoint"] == champion.content_hash
    board = home_builder.run_context.store.require("reports", "leaderboard")
    [row] = json.loads((board.path / "leaderboard.json").read_text(encoding="utf-8"))
    assert (row["checkpoint"], row["benchmark"], row["n"], row["tasks"]) == (
        "tiny",
        "kitchen",
        2,
        2,
    )


@pytest.mark.slow
def test_a_pipeline_run_reports_its_cells(
    champion: Artifact, home_builder: HomeBuilder, instance: dg.DagsterInstance, kitchen: Path
) -> None:
    instance.add_dynamic_partitions("checkpoints", ["tiny", "rescore-1"])
    job = defs.resolve_job_def("evaluate_checkpoint")
    ended = job.execute_in_process(
        instance=instance,
        partition_key="rescore-1",
        tags={"ratchet/kind": "rescore"},
        resources=resources_of(home_builder, kitchen, "evaluation.heldout=4"),
    )
    assert ended.success
    assert instance.get_materialized_partitions(dg.AssetKey("benchmark_scores")) >= {
        "kitchen|tiny",
        "heldout|tiny",
        "validation|tiny",
    }
