"""Benchmark completions from a real model over HTTP, through a proxy that fails in every way.

No completion is lost and none is requested twice.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import Benchmark, heldout
from evaluation.generation.completion_sources import Endpoint, Folder, Told, answers
from evaluation.generation.openai_client import Unanswered
from evaluation.sampling import Sampling
from problems.schema import write_parquet
from problems.sources.compositional import FamilyConfig, heldout_draw
from problems.synthesis.endpoint import TRIES
from problems.synthesis.endpoint import Endpoint as Client
from problems.synthesis.replies import EndpointDown
from resources.home import Home
from tests.serving.door import FAULTS, Door, door_to, served

GREEDY = Sampling(max_new_tokens=6)
TASKS = 6


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return heldout(heldout_draw(FamilyConfig(), 1, TASKS))


@pytest.fixture(scope="module")
def folder(benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from verl_jobs.sft.tiny_model import TinyModel, make

    base = tmp_path_factory.mktemp("asked")
    make(
        TinyModel(hidden=32, layers=1, heads=2, positions=1024),
        [problem.statement for problem in benchmark.problems] * 4,
        base / "model",
    )
    return base / "model"


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[str]:
    with served(folder, Home(folder.parent / "home")) as server:
        yield server


@pytest.fixture
def door(gateway: str) -> Iterator[Door]:
    with door_to(gateway) as made:
        yield made


def endpoint(door: Door, **changes: Any) -> Endpoint:
    return replace(
        Endpoint(door.url, "champion", at_once=4, timeout_s=30.0, pause_s=0.001), **changes
    )


@pytest.mark.parametrize("form", ["chat", "base"])
def test_an_endpoint_s_greedy_answers_are_the_folder_s(
    door: Door, folder: Path, benchmark: Benchmark, tmp_path: Path, form: str
) -> None:
    here = answers(benchmark, Folder(folder, form=form), GREEDY, tmp_path)  # type: ignore[arg-type]
    there = answers(benchmark, endpoint(door, form=form), GREEDY, tmp_path)
    assert [(a.task_id, a.sample, a.text, a.whole, a.cut) for a in here] == [
        (a.task_id, a.sample, a.text, a.whole, a.cut) for a in there
    ]
    assert all(each.tokens for each in there)


def test_faults_of_every_kind_cost_tries_and_no_answer(
    door: Door, benchmark: Benchmark, tmp_path: Path
) -> None:
    whole = answers(benchmark, endpoint(door), GREEDY, tmp_path / "whole")
    door.heard.clear()
    door.faults, door.models = [*FAULTS, *FAULTS], ["429", "nonsense", "nothing"]
    told = Told()
    found = answers(benchmark, endpoint(door), GREEDY, tmp_path / "faulty", told=told)
    assert (
        [each.text for each in found] == [each.text for each in whole]
        and not door.faults
        and not door.models
    )
    # + 2: the two completions that were cut off in transit were requested again
    assert sum(door.heard.values()) == TASKS + 2
    assert told.asked == TASKS and list(told.models) == [
        f"tiny {str(told.who['said']['root'])[:12]}"
    ]


def test_a_second_run_asks_nothing_and_progress_counts_what_was_kept(
    door: Door, benchmark: Benchmark, tmp_path: Path
) -> None:
    drawn, seen = Sampling(n=2, temperature=1.0, max_new_tokens=6), list[tuple[int, int]]()
    first = answers(benchmark, endpoint(door), drawn, tmp_path)
    asked = [json.loads(body) for body in door.heard]
    door.heard.clear()
    assert (
        answers(
            benchmark, endpoint(door), drawn, tmp_path, lambda done, of: seen.append((done, of))
        )
        == first
    )
    assert (
        not door.heard
        and seen == [(2 * TASKS, 2 * TASKS)]
        and sorted(each["seed"] for each in asked) == [0] * TASKS + [1] * TASKS
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_an_endpoint_that_fails_for_ever_is_named_and_what_it_answered_is_kept(
    door: Door, benchmark: Benchmark, tmp_path: Path, fault: str
) -> None:
    two = replace(benchmark, problems=benchmark.problems[:2])
    answers(two, endpoint(door), GREEDY, tmp_path)
    door.faults = [fault] * (TRIES * TASKS)
    with pytest.raises(
        EndpointDown,
        match=rf"{door.url}: .*{TRIES} times for each of 3 requests",
    ):
        answers(benchmark, endpoint(door), GREEDY, tmp_path)
    door.faults, told = [], Told()
    assert (
        len(answers(benchmark, endpoint(door), GREEDY, tmp_path, told=told)) == TASKS
        and told.found == 2
    )


def test_one_question_without_an_answer_leaves_the_others_theirs(
    door: Door, benchmark: Benchmark, tmp_path: Path
) -> None:
    source = endpoint(door, at_once=1)
    assert source.who
    door.faults = ["500"] * TRIES
    with pytest.raises(Unanswered, match=rf"1 of {TASKS} questions have no answer.*run again"):
        answers(benchmark, source, GREEDY, tmp_path)
    told = Told()
    answers(benchmark, source, GREEDY, tmp_path, told=told)
    assert (told.asked, told.found) == (1, TASKS - 1)


def test_an_endpoint_that_says_nothing_is_given_up(benchmark: Benchmark, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(EndpointDown, match=r"list of models.*ReadTimeout"),
    ):
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        answers(
            benchmark, Endpoint(url, "champion", timeout_s=0.02, pause_s=0.001), GREEDY, tmp_path
        )


def test_a_model_that_is_not_there_and_a_request_that_is_refused_end_the_pass(
    door: Door, benchmark: Benchmark, tmp_path: Path
) -> None:
    with pytest.raises(EndpointDown, match="check the address, the model's name"):
        answers(benchmark, endpoint(door, model="nobody"), GREEDY, tmp_path)
    wrong = GREEDY.model_copy(update={"temperature": -1.0})
    with pytest.raises(Unanswered, match=r"3 questions in a row were refused.*temperature"):
        answers(benchmark, endpoint(door, at_once=1), wrong, tmp_path)


def test_a_prompt_that_leaves_no_room_has_an_empty_answer_that_was_cut(
    door: Door, benchmark: Benchmark, tmp_path: Path
) -> None:
    long = replace(benchmark.problems[0], statement="sort upwards " * 2000)
    found = answers(
        replace(benchmark, problems=(long, *benchmark.problems[1:])),
        endpoint(door),
        GREEDY,
        tmp_path,
    )
    assert [(each.text, each.cut) for each in found if each.task_id == long.problem_id] == [
        ("", True)
    ]


def test_a_server_s_wish_to_wait_is_kept(door: Door, benchmark: Benchmark) -> None:
    ask = {"model": "champion", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    waits: list[float] = []
    with Client(door.url, pause_s=0.001) as client:
        for door.retry_after in (
            "90",
            format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True),
            "soon",
        ):
            door.faults = ["429"]
            client.ask(ask, waits.append)
    assert waits[0] == 90.0 and 60.0 < waits[1] <= 90.0 and waits[2] < 1.0


def test_stop_words_beyond_those_that_are_sent_are_heeded_here(
    door: Door, benchmark: Benchmark, tmp_path: Path
) -> None:
    free = answers(benchmark, endpoint(door), GREEDY, tmp_path)
    word = next(each.text for each in free if len(each.text) > 3)[2:4]
    stops = ("~~1", "~~2", "~~3", "~~4", word)
    found = answers(benchmark, endpoint(door), GREEDY.model_copy(update={"stop": stops}), tmp_path)
    assert [each.text for each in found] == [each.text.partition(word)[0] for each in free]
    assert all(len(json.loads(body).get("stop", [])) <= 4 for body in door.heard)


PASS = """
import sys
from pathlib import Path
from evaluation.benchmarks import heldout
from evaluation.generation.completion_sources import Endpoint, answers
from evaluation.generation.decoder import Sampling
from problems.schema import read_parquet
asked, source = heldout(read_parquet(Path(sys.argv[1]))), \
Endpoint(sys.argv[2], "champion", at_once=4)
answers(asked, source, Sampling.model_validate_json(sys.argv[3]), Path(sys.argv[4]))
"""


@pytest.mark.slow
def test_a_pass_that_is_killed_repeats_at_most_what_was_under_way(
    door: Door, benchmark: Benchmark, tmp_path: Path
) -> None:
    sampling, kept = Sampling(n=4, temperature=1.0, max_new_tokens=4), tmp_path / "kept"
    write_parquet(list(benchmark.problems), tmp_path / "problems.parquet")
    door.wait_s = 0.1
    arguments = [
        str(tmp_path / "problems.parquet"),
        door.url,
        sampling.model_dump_json(),
        str(kept),
    ]
    killed = subprocess.Popen(
        [sys.executable, "-c", PASS, *arguments], cwd=Path(__file__).parents[2]
    )
    while sum(door.heard.values()) < 9:
        assert killed.poll() is None, "it ended before it was killed"
        time.sleep(0.005)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    door.wait_s, told = 0.0, Told()
    found = answers(benchmark, endpoint(door), sampling, kept, told=told)
    total = 4 * TASKS
    assert len(found) == told.asked + told.found == total and told.found > 0
    assert sum(door.heard.values()) - total <= 4 and max(door.heard.values()) <= 2
