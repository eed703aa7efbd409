"""The regression set: tasks that a promotion lost.

Each is stored once, is part of all later evaluations, and has a higher weight in a training that a
regression starts.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from assets.contestants import benchmarks_of
from assets.promotion import gate
from assets.training_rows import regression_problems, training_of
from evaluation.promotion.regression import lost_tasks
from evaluation.scorecard import Scorecard
from problems.difficulty.boost import boosted
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem
from resources.registry.regressions import BadLine, RegressionSet
from resources.run_context import StageContext
from resources.run_record import PipelineRun
from tests.evaluation.scorecards import counted, sample, scorecard
from tests.open_runs import open_test_run
from tests.pipelines.home_builder import HomeBuilder

ORIGIN = {"benchmark": "heldout", "solved_by": "old", "lost_by": "new", "run_id": "chain-0002"}
DRAW = heldout_tasks(FamilyConfig(), 60, 60)


def remember(path: Path | str, problems: list[Problem], number: int = 2) -> None:
    RegressionSet(path).remember(problems, number=number, **ORIGIN)


def every_third(
    name: str, content_hash: str, problems: list[Problem], lost: range, won: range
) -> Scorecard:
    """Make a scorecard that solves every third task, without `lost`, and with `won`."""
    solved = [(i % 3 == 0 and i not in lost) or i in won for i in range(len(problems))]
    samples = (sample(p.problem_id, s) for p, s in zip(problems, solved, strict=True))
    return scorecard(name, samples, benchmark_version="draw", checkpoint_hash=content_hash)


@pytest.fixture
def home_builder(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path / "home").with_validation_problems()


def stage(home_builder: HomeBuilder, run_id: str) -> StageContext:
    pipeline_run = PipelineRun(home_builder.run_context.home.runs, run_id)
    with pipeline_run.stage("promoted_model") as report:
        return StageContext(home_builder.run_context, pipeline_run, report)


def test_a_promotion_stores_its_lost_tasks_for_later_runs(
    home_builder: HomeBuilder,
) -> None:
    old, new = home_builder.promoted("first"), home_builder.checkpoint("chain-0002")
    problems = sorted(
        heldout_tasks(
            home_builder.run_context.profile.family,
            0,
            home_builder.run_context.profile.evaluation.heldout,
        ),
        key=lambda p: p.problem_id,
    )
    cards = {
        "champion": every_third("first", old.content_hash, problems, range(0), range(0)),
        "challenger": every_third(
            "chain-0002", new.content_hash, problems, range(1), range(1, len(problems))
        ),
    }
    home_builder.scored("chain-0002", "pipeline", cards, old)
    entry = gate(stage(home_builder, "chain-0002"))
    assert entry.kind == "promote", entry.decision["reasons"]
    lost = {problems[0].problem_id}
    regressions = RegressionSet(home_builder.run_context.home.regressions)
    assert {row.task_id for row in regressions.read()} == lost
    assert {(row.solved_by, row.lost_by) for row in regressions.read()} == {("first", "chain-0002")}
    gate(stage(home_builder, "chain-0002"))
    assert len(regressions.read()) == 1
    open_test_run(home_builder.run_context.home.runs, "chain-0003")
    benchmarks = {
        benchmark.name: benchmark
        for benchmark in benchmarks_of(stage(home_builder, "chain-0003"))[0]
    }
    assert {problem.problem_id for problem in benchmarks["regression"].problems} == lost
    assert benchmarks["regression"].gated
    assert "regression" not in {
        benchmark.name for benchmark in benchmarks_of(stage(home_builder, "chain-0002"))[0]
    }


def test_a_lost_task_is_stored_once_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    remember(path, DRAW[:3])
    remember(path, DRAW[1:5], number=7)
    regressions = RegressionSet(path)
    assert [lost.as_problem() for lost in regressions.read()] == DRAW[:5]
    assert [lost.task_id for lost in regressions.read(before=7)] == [
        problem.problem_id for problem in DRAW[:3]
    ]


def test_a_broken_row_is_reported_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    remember(path, DRAW[:1])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE lost_tasks SET line = '{}'")
    with pytest.raises(BadLine, match=r"records\.db: row 1"):
        RegressionSet(path).read()


def test_concurrent_writers_lose_nothing_and_write_nothing_twice(tmp_path: Path) -> None:
    path, context = tmp_path / "records.db", multiprocessing.get_context("fork")
    workers = [context.Process(target=remember, args=(path, DRAW[start:40])) for start in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(lost.task_id for lost in RegressionSet(path).read()) == sorted(
        p.problem_id for p in DRAW[:40]
    )


def test_only_reliably_solved_tasks_can_count_as_lost() -> None:
    assert lost_tasks(counted("old", [10, 10, 9, 10]), counted("new", [5, 6, 0, 10])) == ("t000",)


def test_problems_that_resemble_lost_tasks_get_more_weight() -> None:
    lost, train = DRAW[0], DRAW[1:]
    weights = boosted({problem.problem_id: 1.0 for problem in train}, train, [lost])
    same = replace(train[0], tags=lost.tags, extra=lost.extra)
    assert boosted({}, [same], [lost])[same.problem_id] == 4.0
    assert min(weights.values()) >= 1.0
    assert max(weights.values()) < 4.0
    assert len(set(weights.values())) > 3


def test_only_a_run_after_a_regression_samples_by_weight(
    home_builder: HomeBuilder,
) -> None:
    remember(home_builder.run_context.home.regressions, DRAW[:2], number=0)
    for name, regression in (("chain-0001", False), ("chain-0002", True)):
        open_test_run(home_builder.run_context.home.runs, name, regression=regression)
    plain, regressed = stage(home_builder, "chain-0001"), stage(home_builder, "chain-0002")
    assert regression_problems(plain) == []
    assert training_of(plain) == home_builder.run_context.profile.training
    assert regression_problems(regressed) == DRAW[:2]
    assert training_of(regressed).curriculum.schedule == "weighted"
