"""One scale is fitted to all stored rankings; its page states the number of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifacts.hashing import hash_data
from artifacts.manifest import Manifest
from assets.difficulty_rankings import agreement, scale_artifact, scale_markdown
from problems.difficulty.difficulty import rank, write_ranks
from problems.difficulty.item_response import read_scale
from resources.home import Home
from resources.progress import Progress
from resources.run_context import RunContext, StageContext
from resources.run_record import StageReport
from resources.settings import Settings
from tests.open_runs import open_test_run


@pytest.fixture
def stage(tmp_path: Path) -> StageContext:
    run_context = RunContext.of(Settings(Home(tmp_path), "small"))
    pipeline_run = open_test_run(run_context.home.runs, "chain-0001")
    return StageContext(
        run_context,
        pipeline_run,
        StageReport(Progress(pipeline_run.progress_file, "difficulty_rankings")),
    )


def store_ranking(stage: StageContext, policy: str, passed: dict[str, int]) -> None:
    """Store a ranking like the asset's. passed: how many of a problem's four completions pass."""
    content = hash_data(policy)
    ranks = rank(
        {key: [i < count for i in range(4)] for key, count in passed.items()},
        {key: hash_data(key) for key in passed},
        content,
    )
    with stage.store.draft("datasets", "difficulty_rankings") as folder:
        write_ranks(ranks, folder / "ranks.parquet")
        facts, inputs = {"policy": policy}, {"policy": content}
        manifest = Manifest(
            kind="datasets",
            name="difficulty_rankings",
            key=hash_data(passed),
            content_hash="",
            facts=facts,
            inputs=inputs,
        )
        stage.store.publish(folder, manifest)


def test_every_ranked_checkpoint_is_on_the_scale(stage: StageContext) -> None:
    store_ranking(stage, "first", {"a": 1, "b": 0, "c": 3})
    one = scale_artifact(stage)
    assert "one checkpoint" in scale_markdown(one)
    assert scale_artifact(stage) == one
    store_ranking(stage, "better", {"a": 3, "b": 2, "d": 4})
    both = scale_artifact(stage)
    names = [
        both.manifest.facts["checkpoints"][row.name] for row in read_scale(both.path).abilities
    ]
    assert names == ["first", "better"]
    assert "2 checkpoints" in scale_markdown(both)
    assert "| better | +" in scale_markdown(both)
    assert len(read_scale(both.path).difficulties) == 4
    assert both.manifest.key != one.manifest.key


def test_the_static_score_is_correlated_with_the_measured_ranking() -> None:
    ranks = rank({"a": [True, True], "b": [True, False], "c": [False, False]})
    text = agreement(ranks, {"a": 0.1, "b": 0.5, "c": 0.9})
    assert "Spearman +1.00" in text
    assert "3 problems" in text
    assert "are equal" in agreement(ranks, dict.fromkeys("abc", 0.5))
