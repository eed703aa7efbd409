"""Sampling completions from an endpoint survives kills at random moments.

No completion is lost, and none is sampled twice.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.benchmarks import Benchmark, heldout
from evaluation.completions import Completion
from evaluation.generation.completion_sources import GenerationReport, Source, generate_completions
from evaluation.generation.openai_client import EndpointSource
from evaluation.sampling import Sampling
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from resources.home import Home
from tests.serving.faulty_proxy import proxy_to, served

AT_ONCE = 4
SAMPLING = Sampling(n=60, temperature=1.0, max_new_tokens=4, seed=11)
# The forkserver has imported everything, so that starting a process costs only a fork.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["evaluation.generation.completion_sources"])


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return heldout(heldout_tasks(FamilyConfig(), 0, 6))


@pytest.fixture(scope="module")
def folder(benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from verl_jobs.sft.tiny_model import TinyModel, make

    base = tmp_path_factory.mktemp("kills")
    make(
        TinyModel(hidden=32, layers=1, heads=2, positions=1024),
        [problem.statement for problem in benchmark.problems] * 4,
        base / "model",
    )
    return base / "model"


def kill_repeatedly(
    benchmark: Benchmark,
    source: Source,
    sampling: Sampling,
    cache: Path,
    *,
    kills: int,
    progress: Callable[[], int],
    most: int,
) -> None:
    """Start the pass `kills` times, and kill it each time after 1 to `most` more requests."""
    for number in range(kills):
        target = progress() + random.Random(number).randint(1, most)
        process = PROCESSES.Process(
            target=generate_completions, args=(benchmark, source, sampling, cache)
        )
        process.start()
        while progress() < target:
            assert process.is_alive(), f"it ended before kill {number + 1}"
            time.sleep(0.002)
        process.kill()
        process.join()


def completions_of(
    benchmark: Benchmark, source: Source, sampling: Sampling, cache: Path
) -> tuple[list[Completion], GenerationReport]:
    """Return the completions without their times, and the pass's report."""
    report = GenerationReport()
    completions = generate_completions(benchmark, source, sampling, cache, report=report)
    return [replace(each, seconds=None) for each in completions], report


def assert_unique_lines(report: GenerationReport, total: int) -> None:
    rows = [json.loads(line) for line in report.journal.read_bytes().splitlines()[1:]]
    assert len(rows) == len({(row["prompt"], row["number"]) for row in rows}) == total


@pytest.mark.soak
def test_thirty_kills_lose_and_repeat_no_completion(
    benchmark: Benchmark, folder: Path, tmp_path: Path
) -> None:
    total, kills = SAMPLING.n * len(benchmark.problems), 30
    with served(folder, Home(tmp_path / "home")) as gateway, proxy_to(gateway) as proxy:
        proxy.wait_s = 0.02
        source = EndpointSource(proxy.url, "champion", at_once=AT_ONCE)
        kill_repeatedly(
            benchmark,
            source,
            SAMPLING,
            tmp_path / "cache",
            kills=kills,
            progress=lambda: sum(proxy.heard.values()),
            most=10,
        )
        completions, report = completions_of(benchmark, source, SAMPLING, tmp_path / "cache")
        repeated = sum(proxy.heard.values()) - total
        print(
            f"{kills} kills: {report.cached} of {total} completions were cached, "
            f"{repeated} requests repeated, at most {kills * AT_ONCE} were in flight"
        )
        assert 0 <= repeated <= kills * AT_ONCE
        assert report.requested + report.cached == total
        assert_unique_lines(report, total)
        undisturbed, _ = completions_of(benchmark, source, SAMPLING, tmp_path / "other")
    # Each request has its own seed, so the model repeats its completions.
    assert completions == undisturbed
