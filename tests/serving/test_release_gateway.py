"""Releases through a real gateway with real models, under load: no request fails or is lost."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from resources.config.release import ReleaseSettings
from resources.config.serving import Breaker
from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.releases import Release, Releases
from serving.gateway.observations import Observations
from serving.release.attach import attached_router
from serving.release.comparison import Comparison
from serving.release.opening import open_release
from serving.release.page import release_routes
from serving.release.plan import Plan
from tests.serving.faulty_engine import Faulty
from tests.serving.gateway_server import ask, call, eventually, fast, promote, running
from tests.serving.tiny_model import make_model

SETTINGS = ReleaseSettings(bake_s=0.5, least_pairs=5, shares=(0.2, 0.5))
PATIENT = SETTINGS.model_copy(update={"least_pairs": 60})
FAIL = [{"role": "user", "content": "please fail"}]


def gateway(home: Home, engines: Faulty | None = None, **changes: Any) -> Any:
    from serving.gateway.app import make_app

    ledger = Ledger(home.ledger)
    return make_app(
        home,
        fast(**changes),
        ledger=ledger,
        router_of=lambda catalog: attached_router(home, ledger, catalog),
        pages=[release_routes(home, ledger)],
        open_engine=engines,
    )


def start(home: Home, version: int = 2, settings: ReleaseSettings = SETTINGS) -> Release:
    ledger = Ledger(home.ledger)
    return open_release(ledger, Releases(home.ledger), settings, version, why="a test")


def last(home: Home) -> Release:
    return Releases(home.ledger).all()[-1]


class Clients:
    """Clients that send requests until stopped, each with one retry if the connection breaks."""

    def __init__(self, url: str, number: int = 6, share_of_faults: int = 0, word: str = "") -> None:
        self.word = word
        self.url, self.faults = url, share_of_faults
        self.statuses: Counter[int] = Counter()
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(number)]

    def __enter__(self) -> Clients:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _run(self, client: int) -> None:
        sent = 0
        while not self.stop.is_set():
            sent += 1
            body: dict[str, Any] = {"user": f"user {client} {sent}", "max_tokens": 4}
            if self.word:
                body["messages"] = [{"role": "user", "content": self.word}]
            if self.faults and sent % self.faults == 0:
                body["messages"] = FAIL
            try:
                status, _ = ask(self.url, **body)
            except OSError:
                eventually(lambda: self._alive())
                status, _ = ask(self.url, **body)
            self.statuses[status] += 1

    def _alive(self) -> bool:
        try:
            return call(f"{self.url}/health/ready")[0] == 200
        except OSError:
            return False


@pytest.fixture
def two(home: Home, checkpoints: dict[str, Path]) -> Home:
    """Return a home whose champion `new` follows `old`."""
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    return home


def test_an_equal_challenger_takes_over_without_a_failed_request(two: Home) -> None:
    start(two)
    with running(gateway(two)) as url, Clients(url) as clients:
        eventually(lambda: not last(two).open, 60)
        time.sleep(1)
        assert ask(url)[1]["model"] == "new"
        assert call(f"{url}/releases/latest")[1]["state"] == "promoted"
    assert set(clients.statuses) == {200}
    observed = [row for _, row in Observations(two.observations).read()]
    assert sum(clients.statuses.values()) <= len(observed)


def test_a_failing_challenger_is_taken_back_and_its_users_get_answers(two: Home) -> None:
    start(two, settings=ReleaseSettings(bake_s=600, shares=(0.5,)))  # only a breach ends it
    engines = Faulty(new={"fail"})
    with running(gateway(two, engines)) as url, Clients(url, share_of_faults=3) as clients:
        eventually(lambda: not last(two).open, 90)
        eventually(lambda: ask(url)[1]["model"] == "old")
    assert last(two).state == "rolled_back"
    assert "errors: worse than the champion" in last(two).last.detail["reasons"][0]
    assert set(clients.statuses) == {200}


def test_a_challenger_that_declines_to_answer_is_taken_back(two: Home) -> None:
    start(two, settings=PATIENT)
    engines = Faulty(new={"decline"})
    with running(gateway(two, engines)) as url, Clients(url, word="decline") as clients:
        eventually(lambda: not last(two).open, 90)
    assert last(two).state == "rolled_back" and set(clients.statuses) == {200}
    assert "refusals: worse than the champion" in last(two).last.detail["reasons"][0]
    rows = [row for _, row in Observations(two.observations).read(0, "release-0001")]
    assert {row.error for row in rows if row.version == 2} == {"declined"}


def test_an_experiment_drops_the_arm_that_fails_and_goes_on(
    two: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoints["new"], tmp_path / "third")
    (folder / "note.txt").write_text("another version with the same weights")
    promote(two, "third", folder)
    ledger = Ledger(two.ledger)
    open_release(ledger, Releases(two.ledger), ReleaseSettings(), 2, 3, why="a test")
    engines = Faulty(third={"fail"})
    with running(gateway(two, engines)) as url, Clients(url, share_of_faults=2) as clients:
        eventually(lambda: last(two).step == 1, 90)
        eventually(lambda: call(f"{url}/releases/latest")[1]["arms"][1]["share"] == 0)
        eventually(lambda: {ask(url)[1]["model"] for _ in range(20)} == {"old", "new"})
    assert last(two).last.detail["dropped"] == [3] and last(two).open
    assert set(clients.statuses) == {200}


@pytest.mark.parametrize("strategy", ["gradual", "shadow"])
def test_an_open_breaker_is_evidence_against_the_challenger(two: Home, strategy: str) -> None:
    """The breaker opens after two requests and never lets another one through."""
    ledger = Ledger(two.ledger)
    settings = ReleaseSettings(bake_s=600, shares=(0.5,), strategy=strategy)  # type: ignore[arg-type]
    open_release(ledger, Releases(two.ledger), settings, 2, why="a test")
    app = gateway(two, Faulty(new={"fail"}), breaker=Breaker(consecutive=2, open_s=600))
    with running(app) as url, Clients(url, 4, share_of_faults=1) as clients:
        eventually(lambda: not last(two).open, 60)
    assert last(two).state == "rolled_back" and set(clients.statuses) == {200}
    rows = [row for _, row in Observations(two.observations).read(0, "release-0001")]
    comparison = Comparison(Plan.model_validate(last(two).plan), 2)
    comparison.add(rows)
    assert "unavailable" in {row.error for row in rows} and comparison.ratio_p_value() > 0.001


@pytest.mark.parametrize("cause", ["was changed", "serving.memory_gib"])
def test_a_challenger_that_cannot_be_loaded_ends_the_release(
    home: Home, checkpoints: dict[str, Path], tmp_path: Path, cause: str
) -> None:
    promote(home, "old", checkpoints["old"])
    folder = shutil.copytree(checkpoints["new"], tmp_path / "new")
    promote(home, "new", folder)
    start(home)
    if cause == "was changed":
        (folder / "config.json").write_bytes((folder / "config.json").read_bytes() + b" ")
    memory_gib = 4.0 if cause == "was changed" else 1e-6
    with running(gateway(home, memory_gib=memory_gib)) as url, Clients(url, 2) as clients:
        eventually(lambda: not last(home).open, 10)
        assert ask(url)[1]["model"] == "old"
    assert last(home).state == "aborted" and cause in last(home).last.detail["reasons"][0]
    assert set(clients.statuses) == {200}


def test_a_gateway_without_memory_is_out_of_service_and_the_other_goes_on(two: Home) -> None:
    start(two, settings=PATIENT)
    with running(gateway(two)) as good, Clients(good, 2) as clients:
        eventually(lambda: list(two.gateways.glob("*.json")) != [])
        with running(gateway(two, memory_gib=1e-6)) as poor:
            eventually(lambda: call(f"{poor}/health/ready")[0] == 503)
            assert call(f"{poor}/health/ready")[1]["error"]["code"] == "out_of_service"
            assert ask(poor)[0] == 200  # requests still get an answer
            eventually(lambda: not last(two).open, 120)
    assert last(two).state == "promoted" and set(clients.statuses) == {200}


@contextmanager
def served(home: Home, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run `ratchet serve`; killed at the end."""
    environment = os.environ | {"RATCHET_HOME": str(home.path)}
    command = [sys.executable, "-m", "cli.main", "serve", "--port", str(port)]
    with subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            os.kill(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_gateway_continues_the_release_and_loses_no_request(two: Home) -> None:
    """`kill -9` of `ratchet serve` several times during a release, clients with one retry."""
    start(two)
    with served(two, 0) as process:
        assert process.stdout
        found = re.search(r"(http://\S+):(\d+)/v1", process.stdout.readline())
        assert found
    url, port = f"{found[1]}:{found[2]}", int(found[2])
    kills = 0
    with Clients(url, 4) as clients:
        while last(two).open and kills < 12:
            with served(two, port):
                eventually(clients._alive, 60)
                time.sleep(0.4 + 0.4 * kills)
            kills += 1
        with served(two, port):
            eventually(clients._alive, 60)
            eventually(lambda: not last(two).open, 60)
            clients.stop.set()
            for thread in clients.threads:
                thread.join()
    assert kills >= 2
    kinds = [(event.kind, event.step) for event in last(two).events]
    assert kinds == [("opened", 0), ("step", 1), ("promoted", 1)]
    assert set(clients.statuses) == {200}


def test_a_deployed_version_that_cannot_be_loaded_is_told_by_ready(
    home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    own = make_model(tmp_path / "own", 7)
    for name, path in (("own", own), ("old", checkpoints["old"]), ("new", checkpoints["new"])):
        promote(home, name, path)
    with running(gateway(home)) as url:
        shutil.rmtree(own)
        ledger, releases = Ledger(home.ledger), Releases(home.ledger)
        open_release(ledger, releases, SETTINGS, 1, strategy="immediate", why="a test")
        state = eventually(lambda: (r := call(f"{url}/health/ready")[1])["status"] != "ok" and r)
        eventually(lambda: "is missing" in call(f"{url}/health/ready")[1]["fault"])
        assert state["status"] == "degraded" and "version 1 is deployed" in state["fault"]
        assert ask(url)[1]["model"] == "new"
