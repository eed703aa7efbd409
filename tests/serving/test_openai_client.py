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

from artifacts.tensors import weights_hash
from decoding.draws import nth_seed
from evaluation.benchmarks import Benchmark, heldout
from evaluation.generation.completion_sources import (
    FolderSource,
    GenerationReport,
    generate_completions,
)
from evaluation.generation.openai_client import EndpointSource, MissingCompletions
from evaluation.sampling import Sampling
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from problems.schema import write_parquet
from problems.synthesis.endpoint import TRIES
from problems.synthesis.endpoint import Endpoint as Client
from problems.synthesis.replies import EndpointDown
from resources.home import Home
from tests.serving.faulty_proxy import FAULTS, FaultyProxy, proxy_to, served

GREEDY = Sampling(max_new_tokens=6)
TASKS = 6


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return heldout(heldout_tasks(FamilyConfig(), 0, TASKS))


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
def proxy(gateway: str) -> Iterator[FaultyProxy]:
    with proxy_to(gateway) as opened:
        yield opened


def endpoint(proxy: FaultyProxy, **changes: Any) -> EndpointSource:
    return replace(
        EndpointSource(proxy.url, "champion", at_once=4, timeout_s=30.0, pause_s=0.001), **changes
    )


@pytest.mark.parametrize("form", ["chat", "base"])
def test_endpoint_and_folder_give_equal_greedy_completions(
    proxy: FaultyProxy, folder: Path, benchmark: Benchmark, tmp_path: Path, form: str
) -> None:
    here = generate_completions(benchmark, FolderSource(folder, form=form), GREEDY, tmp_path)  # type: ignore[arg-type]
    there = generate_completions(benchmark, endpoint(proxy, form=form), GREEDY, tmp_path)
    assert [(a.task_id, a.sample, a.text, a.whole, a.cut) for a in here] == [
        (a.task_id, a.sample, a.text, a.whole, a.cut) for a in there
    ]
    assert all(each.tokens for each in there)


def test_every_kind_of_fault_is_retried(
    proxy: FaultyProxy, folder: Path, benchmark: Benchmark, tmp_path: Path
) -> None:
    whole = generate_completions(benchmark, endpoint(proxy), GREEDY, tmp_path / "whole")
    proxy.heard.clear()
    proxy.faults, proxy.models = [*FAULTS, *FAULTS], ["429", "nonsense", "nothing"]
    counts = GenerationReport()
    completions = generate_completions(
        benchmark, endpoint(proxy), GREEDY, tmp_path / "faulty", report=counts
    )
    assert [each.text for each in completions] == [each.text for each in whole]
    assert not proxy.faults
    assert not proxy.models
    # + 2: the two completions that were cut off in transit were requested again
    assert sum(proxy.heard.values()) == TASKS + 2
    assert counts.requested == TASKS
    assert list(counts.models) == [f"tiny {weights_hash(folder)[:12]}"]


def test_a_second_run_reads_everything_from_the_cache(
    proxy: FaultyProxy, benchmark: Benchmark, tmp_path: Path
) -> None:
    drawn, seen = Sampling(n=2, temperature=1.0, max_new_tokens=6), list[tuple[int, int]]()
    first = generate_completions(benchmark, endpoint(proxy), drawn, tmp_path)
    requests = [json.loads(body) for body in proxy.heard]
    proxy.heard.clear()
    assert (
        generate_completions(
            benchmark, endpoint(proxy), drawn, tmp_path, lambda done, of: seen.append((done, of))
        )
        == first
    )
    assert not proxy.heard
    assert seen == [(2 * TASKS, 2 * TASKS)]
    assert sorted(each["seed"] for each in requests) == [0] * TASKS + [nth_seed(0, 1)] * TASKS


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["429", "cut"])
def test_a_failing_endpoint_is_named_and_its_completions_cached(
    proxy: FaultyProxy, benchmark: Benchmark, tmp_path: Path, fault: str
) -> None:
    two = replace(benchmark, problems=benchmark.problems[:2])
    generate_completions(two, endpoint(proxy), GREEDY, tmp_path)
    proxy.faults = [fault] * (TRIES * TASKS)
    with pytest.raises(EndpointDown, match=rf"{proxy.url}: .*\b{TRIES}\b.*\b3\b"):
        generate_completions(benchmark, endpoint(proxy), GREEDY, tmp_path)
    proxy.faults, counts = [], GenerationReport()
    assert (
        len(generate_completions(benchmark, endpoint(proxy), GREEDY, tmp_path, report=counts))
        == TASKS
    )
    assert counts.cached == 2


def test_one_failed_request_does_not_lose_the_others(
    proxy: FaultyProxy, benchmark: Benchmark, tmp_path: Path
) -> None:
    source = endpoint(proxy, at_once=1)
    assert source.identity
    proxy.faults = ["500"] * TRIES
    with pytest.raises(MissingCompletions, match=rf"\b1 of {TASKS}\b"):
        generate_completions(benchmark, source, GREEDY, tmp_path)
    counts = GenerationReport()
    generate_completions(benchmark, source, GREEDY, tmp_path, report=counts)
    assert (counts.requested, counts.cached) == (1, TASKS - 1)


def test_a_silent_endpoint_times_out(benchmark: Benchmark, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(EndpointDown, match=r"list of models.*ReadTimeout"),
    ):
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        generate_completions(
            benchmark,
            EndpointSource(url, "champion", timeout_s=0.2, pause_s=0.001),
            GREEDY,
            tmp_path,
        )


def test_unknown_models_and_refused_requests_end_the_pass(
    proxy: FaultyProxy, benchmark: Benchmark, tmp_path: Path
) -> None:
    with pytest.raises(EndpointDown, match="model"):
        generate_completions(benchmark, endpoint(proxy, model="nobody"), GREEDY, tmp_path)
    wrong = GREEDY.model_copy(update={"temperature": -1.0})
    with pytest.raises(MissingCompletions, match=r"\b3\b.*temperature"):
        generate_completions(benchmark, endpoint(proxy, at_once=1), wrong, tmp_path)


def test_a_too_long_prompt_gets_an_empty_truncated_completion(
    proxy: FaultyProxy, benchmark: Benchmark, tmp_path: Path
) -> None:
    long = replace(benchmark.problems[0], statement="sort upwards " * 2000)
    completions = generate_completions(
        replace(benchmark, problems=(long, *benchmark.problems[1:])),
        endpoint(proxy),
        GREEDY,
        tmp_path,
    )
    assert [(each.text, each.cut) for each in completions if each.task_id == long.problem_id] == [
        ("", True)
    ]


def test_the_retry_after_header_is_respected(proxy: FaultyProxy, benchmark: Benchmark) -> None:
    ask = {"model": "champion", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    waits: list[float] = []
    with Client(proxy.url, pause_s=0.001) as client:
        for proxy.retry_after in (
            "90",
            format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True),
            "soon",
        ):
            proxy.faults = ["429"]
            client.ask(ask, waits.append)
    assert waits[0] == 90.0
    assert 60.0 < waits[1] <= 90.0
    assert waits[2] < 1.0


def test_stop_words_beyond_the_sent_ones_are_applied_locally(
    proxy: FaultyProxy, benchmark: Benchmark, tmp_path: Path
) -> None:
    free = generate_completions(benchmark, endpoint(proxy), GREEDY, tmp_path)
    word = next(each.text for each in free if len(each.text) > 3)[2:4]
    stops = ("~~1", "~~2", "~~3", "~~4", word)
    completions = generate_completions(
        benchmark, endpoint(proxy), GREEDY.model_copy(update={"stop": stops}), tmp_path
    )
    assert [each.text for each in completions] == [each.text.partition(word)[0] for each in free]
    assert all(len(json.loads(body).get("stop", [])) <= 4 for body in proxy.heard)


PASS = """
import sys
from pathlib import Path
from evaluation.benchmarks import heldout
from evaluation.generation.completion_sources import EndpointSource, generate_completions
from evaluation.sampling import Sampling
from problems.schema import read_parquet
asked, source = heldout(read_parquet(Path(sys.argv[1]))), \
EndpointSource(sys.argv[2], "champion", at_once=4)
generate_completions(asked, source, Sampling.model_validate_json(sys.argv[3]), Path(sys.argv[4]))
"""


@pytest.mark.slow
def test_a_killed_pass_repeats_only_requests_in_flight(
    proxy: FaultyProxy, benchmark: Benchmark, tmp_path: Path
) -> None:
    sampling, cache = Sampling(n=4, temperature=1.0, max_new_tokens=4), tmp_path / "kept"
    write_parquet(list(benchmark.problems), tmp_path / "problems.parquet")
    proxy.wait_s = 0.1
    arguments = [
        str(tmp_path / "problems.parquet"),
        proxy.url,
        sampling.model_dump_json(),
        str(cache),
    ]
    killed = subprocess.Popen(
        [sys.executable, "-c", PASS, *arguments], cwd=Path(__file__).parents[2]
    )
    while sum(proxy.heard.values()) < 9:
        assert killed.poll() is None, "it ended before it was killed"
        time.sleep(0.005)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    proxy.wait_s, counts = 0.0, GenerationReport()
    completions = generate_completions(benchmark, endpoint(proxy), sampling, cache, report=counts)
    total = 4 * TASKS
    assert len(completions) == counts.requested + counts.cached == total
    assert counts.cached > 0
    assert sum(proxy.heard.values()) - total <= 4
    assert max(proxy.heard.values()) <= 2
