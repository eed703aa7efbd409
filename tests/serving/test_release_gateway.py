"""Releases through a real gateway with real models, under load: no request fails or is lost."""

from __future__ import annotations

import shutil
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
from serving.release.comparison import ArmComparison
from serving.release.page import release_routes
from serving.release.plan import ReleasePlan
from tests.serving.clients import Clients
from tests.serving.faulty_engine import Faulty
from tests.serving.gateway_server import ask, call, eventually, fast, promote, running
from tests.serving.tiny_model import make_model
from tests.serving.traffic import WIDE, open_release

pytestmark = pytest.mark.slow
SETTINGS = WIDE.model_copy(
    update={"bake_s": 0.5, "watch_s": 0.5, "min_pairs": 5, "shares": (0.2, 0.5)}
)
PATIENT = SETTINGS.model_copy(update={"bake_s": 600})  # only a breach ends it


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
    return open_release(ledger, Releases(home.ledger), settings, version)


def last(home: Home) -> Release:
    return Releases(home.ledger).all()[-1]


@pytest.fixture
def two(home: Home, checkpoints: dict[str, Path]) -> Home:
    """Return a home whose champion `new` follows `old`."""
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    return home


def test_an_equal_challenger_takes_over_without_a_failed_request(two: Home) -> None:
    start(two)
    with running(gateway(two)) as url, Clients(url) as clients:
        eventually(lambda: not last(two).open)
        eventually(lambda: ask(url)[1]["model"] == "new")
        assert call(f"{url}/releases/latest")[1]["state"] == "promoted"
    assert set(clients.statuses) == {200}
    observed = [row for _, row in Observations(two.observations).read()]
    assert sum(clients.statuses.values()) <= len(observed)


def test_a_failing_challenger_is_taken_back_and_its_users_get_answers(two: Home) -> None:
    start(two, settings=PATIENT.model_copy(update={"shares": (0.5,)}))
    engines = Faulty(new={"fail"})
    with running(gateway(two, engines)) as url, Clients(url, share_of_faults=3) as clients:
        eventually(lambda: not last(two).open)
        eventually(lambda: ask(url)[1]["model"] == "old")
    assert last(two).state == "rolled_back"
    assert "errors: worse than the champion" in last(two).last.detail["reasons"][0]
    assert set(clients.statuses) == {200}


def test_a_challenger_that_declines_to_answer_is_taken_back(two: Home) -> None:
    start(two, settings=PATIENT)
    engines = Faulty(new={"decline"})
    with running(gateway(two, engines)) as url, Clients(url, word="decline") as clients:
        eventually(lambda: not last(two).open)
    assert last(two).state == "rolled_back"
    assert set(clients.statuses) == {200}
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
    settings = ReleaseSettings(alpha=0.2)  # so that fewer requests show the harm
    open_release(ledger, Releases(two.ledger), settings, 2, 3)
    engines = Faulty(third={"fail"})
    with running(gateway(two, engines)) as url, Clients(url, share_of_faults=2) as clients:
        eventually(lambda: last(two).step == 1)
        eventually(lambda: call(f"{url}/releases/latest")[1]["arms"][1]["share"] == 0)
        eventually(lambda: {ask(url)[1]["model"] for _ in range(20)} == {"old", "new"})
    assert last(two).last.detail["dropped"] == [3]
    assert last(two).open
    assert set(clients.statuses) == {200}


@pytest.mark.parametrize("strategy", ["gradual", "shadow"])
def test_an_open_breaker_is_evidence_against_the_challenger(two: Home, strategy: str) -> None:
    """The breaker opens after two requests and never lets another one through."""
    ledger = Ledger(two.ledger)
    settings = ReleaseSettings(bake_s=600, shares=(0.5,), strategy=strategy)  # type: ignore[arg-type]
    open_release(ledger, Releases(two.ledger), settings, 2)
    app = gateway(two, Faulty(new={"fail"}), breaker=Breaker(consecutive=2, open_s=600))
    with running(app) as url, Clients(url, 4, share_of_faults=1) as clients:
        eventually(lambda: not last(two).open)
    assert last(two).state == "rolled_back"
    assert set(clients.statuses) == {200}
    rows = [row for _, row in Observations(two.observations).read(0, "release-0001")]
    comparison = ArmComparison(ReleasePlan.model_validate(last(two).plan), 2)
    comparison.add(rows)
    assert "unavailable" in {row.error for row in rows}
    assert comparison.ratio_p_value() > 0.001


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
        eventually(lambda: not last(home).open)
        assert ask(url)[1]["model"] == "old"
    assert last(home).state == "aborted"
    assert cause in last(home).last.detail["reasons"][0]
    assert set(clients.statuses) == {200}


def test_a_gateway_without_memory_is_out_of_service_and_the_other_goes_on(two: Home) -> None:
    start(two)
    releases = Releases(two.ledger)
    releases.append(last(two).last, "paused", {"reasons": ["until the other gateway runs"]})
    with running(gateway(two)) as good, Clients(good, 2) as clients:
        eventually(lambda: list(two.gateways.glob("*.json")) != [])
        with running(gateway(two, memory_gib=1e-6)) as poor:
            eventually(lambda: call(f"{poor}/health/ready")[0] == 503)
            assert call(f"{poor}/health/ready")[1]["error"]["code"] == "out_of_service"
            assert ask(poor)[0] == 200  # requests still get an answer
            releases.append(last(two).last, "resumed", {"reasons": ["a test"]})
            eventually(lambda: not last(two).open)
    assert last(two).state == "promoted"
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
        open_release(ledger, releases, SETTINGS, 1, strategy="immediate")
        state = eventually(lambda: (r := call(f"{url}/health/ready")[1])["status"] != "ok" and r)
        eventually(lambda: "is missing" in call(f"{url}/health/ready")[1]["fault"])
        assert state["status"] == "degraded"
        assert "version 1 is deployed" in state["fault"]
        assert ask(url)[1]["model"] == "new"
