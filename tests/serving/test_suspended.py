"""A gateway whose process stands still, as one whose container or virtual machine is paused."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from resources.home import Home
from serving.gateway.observations import Observations
from serving.gateway.service import ANSWERED
from serving.release.step_clock import StepClock
from serving.running_clock import MIN_S, RunningClock
from tests.serving.gateway_server import ask, call, eventually, promote
from tests.serving.test_serve_process import PATIENCE_S, free_port, serving
from tests.serving.traffic import Site

CLIENTS, DEADLINE_S, STOPPED_S = 12, 6.0, 9.0


class Steady:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def steady() -> Steady:
    return Steady()


def test_the_clock_leaves_out_a_standstill_and_no_short_gap(steady: Steady) -> None:
    clock = RunningClock(steady)
    steady.now = MIN_S
    assert (clock.now(), clock.stood_still) == (MIN_S, 0.0)
    steady.now += 720.0
    assert (clock.now(), clock.stood_still) == (MIN_S, 720.0)


def test_a_step_does_not_bake_in_a_standstill(tmp_path: Path, steady: Steady) -> None:
    clock = RunningClock(steady)
    release = Site(tmp_path).open()
    step, since = StepClock(clock.now), release.step_since
    step.ran(release, since)
    steady.now = 720.0
    assert step.ran(release, since + 720.0) == 0.0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_after_a_standstill_no_version_is_blamed_and_answers_go_on(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    port, stop = free_port(), threading.Event()
    url = f"http://127.0.0.1:{port}"
    statuses: Counter[tuple[int, str]] = Counter()

    def client() -> None:
        while not stop.is_set():
            status, reply = ask(url, max_tokens=100, temperature=1.0)
            statuses[status, reply.get("error", {}).get("code", "")] += 1

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    with serving(home, port, "--set", f"serving.deadline_s={DEADLINE_S}") as process:
        for thread in threads:
            thread.start()
        eventually(lambda: statuses[200, ""] > CLIENTS, PATIENCE_S)
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        process.send_signal(signal.SIGCONT)
        before = statuses[200, ""]
        eventually(lambda: statuses[200, ""] > before + CLIENTS, PATIENCE_S)
        versions = call(f"{url}/models")[1]["versions"]
        stop.set()
        for thread in threads:
            thread.join()
        eventually(lambda: len(list(Observations(home.observations).read())) >= statuses.total())
    assert set(statuses) <= {(200, ""), (503, "suspended")}, statuses
    assert [each["breaker"] for each in versions] == ["closed", "closed"]
    rows = [row for _, row in Observations(home.observations).read()]
    assert {row.error for row in rows} - set(ANSWERED) == {"suspended"}
    assert max(row.total_s for row in rows) < STOPPED_S
