"""The record of a pipeline run has a unique number, can be resumed, and survives kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resources.home import Home
from resources.progress import Progress, read
from resources.run_record import (
    Kind,
    PipelineRun,
    RunRecords,
    newest_id,
    next_id,
    open_run,
    records,
    tasks_used,
)
from tests.resources.postgres import Server

WRITER = """
import sys
from pathlib import Path
from resources.home import Home
from resources.run_record import PipelineRun
run, n = PipelineRun(Home(Path(sys.argv[1])).runs, sys.argv[2]), 0
while True:
    n += 1
    run.change(minutes=float(n), error="x" * 5000)
    if n == 1:
        print("writes", flush=True)
"""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> RunRecords:
    """The records of an empty home: in a file, then on a real server."""
    if request.param == "sqlite":
        return Home(tmp_path).runs
    server: Server = request.getfixturevalue("server")
    return Home(tmp_path, server.fresh(f"runs_{time.time_ns()}")).runs


def opened(runs: RunRecords, name: str, kind: Kind = "pipeline") -> PipelineRun:
    return open_run(runs, name, kind=kind, base_seed=3, profile="small", why="test", champion=None)


def test_runs_are_numbered_in_order_from_one(runs: RunRecords) -> None:
    assert next_id(runs) == "chain-0001"
    pipeline_run = opened(runs, "chain-0001")
    assert next_id(runs) == "chain-0001"
    pipeline_run.change(state="done")
    assert next_id(runs) == "chain-0002"


@pytest.mark.slow
def test_two_homes_on_one_server_share_numbers_names_and_draws(
    server: Server, tmp_path: Path
) -> None:
    url = server.fresh(f"homes_{time.time_ns()}")
    one, other = (Home(tmp_path / name, url).runs for name in ("one", "other"))
    first = opened(one, "chain-0001").draw(1, 400)
    assert next_id(other) == "chain-0001"  # it is open: the other home may resume it
    PipelineRun(one, "chain-0001").change(state="done")
    assert next_id(other) == "chain-0002"
    second = opened(other, "chain-0002")
    assert (second.record.number, second.draw(1, 400).first) == (2, first.end)
    assert [record.id for record in records(one)] == ["chain-0001", "chain-0002"]


def test_an_open_run_is_resumed(runs: RunRecords) -> None:
    opened(runs, "chain-0001").change(minutes=4.0)
    assert opened(runs, "chain-0001").record.minutes == 4.0


def test_run_numbers_are_never_reused(runs: RunRecords) -> None:
    kinds: list[tuple[str, Kind]] = [
        ("chain-0001", "pipeline"),
        ("put-by-hand", "evaluation"),
        ("rescore-1", "rescore"),
        ("chain-0002", "pipeline"),
    ]
    assert [opened(runs, name, kind).record.number for name, kind in kinds] == [1, 2, 3, 4]
    assert len({record.seed for record in records(runs)}) == 4


def test_draws_of_a_home_never_overlap(runs: RunRecords) -> None:
    draws = [
        opened(runs, f"chain-{i}").draw(seed, count)
        for i, (seed, count) in enumerate([(1, 400), (1, 24), (2, 400), (1, 400)])
    ]
    assert [(draw.first, draw.end) for draw in draws] == [
        (0, 400),
        (400, 424),
        (0, 400),
        (424, 824),
    ]


def test_a_resumed_run_keeps_its_draw(runs: RunRecords) -> None:
    first = opened(runs, "chain-0001").draw(1, 400)
    opened(runs, "chain-0002").draw(1, 400)
    assert opened(runs, "chain-0001").draw(1, 400) == first


def test_a_run_without_held_out_scores_uses_no_tasks(runs: RunRecords) -> None:
    opened(runs, "validation-1", "validation")
    opened(runs, "chain-0001")
    assert tasks_used(records(runs), 1) == 0


def test_a_data_refresh_consumes_no_run_number(runs: RunRecords) -> None:
    assert opened(runs, "data", "data").record.number == 0
    assert opened(runs, "chain-0001").record.number == 1


def test_a_run_that_failed_twice_is_not_resumed(runs: RunRecords) -> None:
    pipeline_run = opened(runs, "chain-0001")
    assert pipeline_run.fail("no memory").state == "open"
    assert next_id(runs) == "chain-0001"
    assert pipeline_run.fail("no memory").state == "failed"
    assert next_id(runs) == "chain-0002"


def test_the_newest_run_to_evaluate_has_a_checkpoint(
    runs: RunRecords,
) -> None:
    with opened(runs, "chain-0001").stage("checkpoint"):
        pass
    with opened(runs, "chain-0002").stage("raw_problems"):
        pass
    assert newest_id(runs) == "chain-0001"
    opened(runs, "put-by-hand", "evaluation")
    assert newest_id(runs) == "put-by-hand"


def test_smoke_runs_have_their_own_numbers(runs: RunRecords) -> None:
    opened(runs, "chain-0001").change(state="done")
    assert next_id(runs, "smoke") == "smoke-0001"


def test_a_stage_keeps_the_time_of_its_first_run(
    runs: RunRecords,
) -> None:
    pipeline_run = opened(runs, "chain-0001")
    with pipeline_run.stage("clean_problems") as stage:
        stage.created += 1
        time.sleep(0.02)
    first = pipeline_run.record.stages["clean_problems"]
    with pipeline_run.stage("clean_problems") as stage:
        stage.reused += 1
    assert first.seconds >= 0.02
    assert pipeline_run.record.stages["clean_problems"] == first
    assert [line.event for line in read(pipeline_run.progress_file)[0]] == [
        "begin",
        "end",
        "begin",
        "found",
    ]


def test_all_attempts_of_a_stage_count(runs: RunRecords) -> None:
    pipeline_run = opened(runs, "chain-0001")
    progress = Progress(pipeline_run.progress_file, "checkpoint")
    progress.write("begin")
    time.sleep(0.02)
    progress.write("at", 1, 9)  # then it is killed
    time.sleep(0.2)
    with pytest.raises(ValueError), pipeline_run.stage("checkpoint"):
        time.sleep(0.02)
        raise ValueError("no room")
    with pipeline_run.stage("checkpoint") as stage:
        time.sleep(0.02)
        stage.created += 1
    assert 0.06 <= pipeline_run.record.stages["checkpoint"].seconds < 0.2


def test_a_stage_that_raises_is_recorded_as_failed(runs: RunRecords) -> None:
    pipeline_run = opened(runs, "chain-0001")
    with pytest.raises(ValueError), pipeline_run.stage("checkpoint"):
        raise ValueError("no room\nand more")
    assert [(line.event, line.text) for line in read(pipeline_run.progress_file)[0]] == [
        ("begin", ""),
        ("failed", "no room"),
    ]


@pytest.mark.slow
def test_a_kill_during_a_write_leaves_the_record_complete(tmp_path: Path) -> None:
    runs = Home(tmp_path).runs
    pipeline_run = opened(runs, "chain-0001")
    for wait in (0.05, 0.1, 0.15):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(runs.home), "chain-0001"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout
        assert writer.stdout.readline() == "writes\n"
        time.sleep(wait)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        assert pipeline_run.record.minutes >= 1
        pipeline_run.change(state="open")  # the lock was released


def test_progress_that_stands_still_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    progress = Progress(path, "checkpoint")
    for done in (4, 4, 5, 5, 5):
        progress.at(done, 5, "reward 0.5")
    assert [line.done for line in read(path)[0]] == [4, 5]


def test_a_truncated_progress_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    Progress(path, "checkpoint").at(5, 5, "reward 0.5")
    with path.open("a", encoding="utf-8") as file:
        file.write('{"t": 1, "stage"\n')
    Progress(path, "checkpoint").write("end")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"t": 1})[:5])
    lines, offset = read(path)
    assert [line.event for line in lines] == ["at", "end"]
    assert offset < path.stat().st_size
