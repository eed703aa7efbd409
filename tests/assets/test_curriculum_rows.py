"""A curriculum's initial values come from the stored ranking and weights.

They are written only if a curriculum samples the problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from artifacts.hashing import hash_data
from artifacts.manifest import Manifest
from assets.training_rows import training_rows
from problems.dataset.balance import Weight, write_weights
from problems.dataset.card import WEIGHTS
from problems.difficulty.difficulty import rank, write_ranks
from problems.difficulty.pass_rate_prior import FILE, read_expected
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem, write_parquet
from resources.home import Home
from resources.progress import Progress
from resources.run_context import RunContext, StageContext
from resources.settings import Settings
from resources.stage_report import StageReport
from tests.open_runs import open_test_run

PROBLEMS = generate(FamilyConfig(demonstrations=2, train=6, validation=2))
TRAIN = sorted(  # the order on disk
    (problem for problem in PROBLEMS if problem.split == "train"),
    key=lambda problem: problem.problem_id,
)


def stage(
    tmp_path: Path,
    schedule: str,
    *,
    measured: bool = True,
    problems: Sequence[Problem] = PROBLEMS,
) -> StageContext:
    """Return the stage of a home whose training problems 0 and 1 have pass rates of 1 and 0.5.

    measured: whether the ranking has weights too; the clean dataset always has.
    """
    tmp_path.mkdir(exist_ok=True)
    profile = tmp_path / "profile.yaml"
    profile.write_text(f"training: {{curriculum: {{schedule: {schedule}}}}}", encoding="utf-8")
    run_context = RunContext.of(Settings(Home(tmp_path / "home"), str(profile)))
    pipeline_run = open_test_run(run_context.home.runs, "chain-0001")
    stage = StageContext(
        run_context, pipeline_run, StageReport(Progress(pipeline_run.progress_file, "checkpoint"))
    )
    with stage.store.draft("datasets", "clean_problems") as folder:
        write_parquet(list(problems), folder / "problems.parquet")
        write_weights([_weight(problem, 0.5) for problem in TRAIN], folder / WEIGHTS)
        stage.store.publish(
            folder,
            Manifest(
                kind="datasets", name="clean_problems", key=hash_data("clean"), content_hash=""
            ),
        )
    with stage.store.draft("datasets", "difficulty_rankings") as folder:
        write_ranks(
            rank({TRAIN[0].problem_id: [True] * 4, TRAIN[1].problem_id: [True, False] * 2}),
            folder / "ranks.parquet",
        )
        if measured:
            write_weights([_weight(TRAIN[1], 2.0)], folder / WEIGHTS)
        stage.store.publish(
            folder,
            Manifest(
                kind="datasets",
                name="difficulty_rankings",
                key=hash_data(measured),
                content_hash="",
            ),
        )
    return stage


def _weight(problem: Problem, weight: float) -> Weight:
    return Weight(problem.problem_id, problem.style, 3, False, weight)


def test_every_training_row_has_its_expectation_and_weight(tmp_path: Path) -> None:
    rows = training_rows(stage(tmp_path, "window"))
    expected = read_expected(rows.path / FILE)
    trained = [
        about["problem_id"]
        for about in pq.read_table(rows.path / "train.parquet")["extra_info"].to_pylist()
    ]
    # The problem that is always solved is left out.
    assert (
        [row.problem_id for row in expected]
        == trained
        == [problem.problem_id for problem in TRAIN[1:]]
    )
    assert [(row.passed, row.n, row.weight) for row in expected] == [(2, 4, 2.0)] + [
        (0, 0, 1.0)
    ] * 4


def test_without_measured_weights_the_clean_dataset_decides(tmp_path: Path) -> None:
    assert {
        row.weight
        for row in read_expected(
            training_rows(stage(tmp_path, "mixed", measured=False)).path / FILE
        )
    } == {0.5}


def test_a_flood_from_production_stays_below_its_share(tmp_path: Path) -> None:
    flood = [
        replace(TRAIN[1], problem_id=f"production/{n:03d}", source="production", extra={"key": "a"})
        for n in range(200)
    ]
    more = [replace(TRAIN[2], problem_id=f"mine/{n}", source="mine") for n in range(40)]
    rows = training_rows(stage(tmp_path, "uniform", problems=[*PROBLEMS, *more, *flood]))
    about = pq.read_table(rows.path / "train.parquet")["extra_info"].to_pylist()
    ours = [each for each in about if each["problem_id"].startswith("production/")]
    assert (len(ours), len(about)) == (2, 47)
    assert rows.manifest.facts["left_out_over_production_share"] == 198


@pytest.mark.parametrize("schedule", ["uniform", "weighted"])
def test_the_schedule_does_not_change_the_rows(tmp_path: Path, schedule: str) -> None:
    rows = training_rows(stage(tmp_path / "a", schedule))
    window = training_rows(stage(tmp_path / "b", "window"))
    train = "train.parquet"
    assert (rows.path / train).read_bytes() == (window.path / train).read_bytes()
    assert (rows.path / FILE).exists() == (schedule != "uniform")
