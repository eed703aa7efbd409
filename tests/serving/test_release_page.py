"""The release page: its JSON, and what a person reads in a real browser."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from resources.home import Home
from serving.gateway.app import make_app
from serving.gateway.keys import Keys
from serving.gateway.refusals import Refused
from serving.release.page import release_routes
from tests.browser import Browser, chromium
from tests.serving.gateway_server import call, fast, running
from tests.serving.traffic import SETTINGS, Site


@pytest.fixture
def app(tmp_path: Path, site: Site) -> FastAPI:
    made = FastAPI()
    made.include_router(release_routes(Home(tmp_path), site.ledger))
    return made


def roll_back(site: Site) -> None:
    """Let a release reach its second step, where the challenger begins to fail."""
    site.open(settings=SETTINGS.model_copy(update={"bake_s": 60.0}))
    site.send(300, errors=(0.02, 0.02))
    now = time.time()
    site.controller.clock = lambda: now + 61
    assert site.tick() == "step"
    site.controller.clock = lambda: now
    while site.last().open:
        site.send(60, errors=(0.02, 0.8))
        site.tick()


def test_no_release_is_an_empty_list_and_no_latest_one(app: FastAPI) -> None:
    client = TestClient(app)
    assert client.get("/releases").json() == []
    assert client.get("/releases/latest").status_code == 404


def test_a_release_is_found_by_its_id_and_as_the_latest(app: FastAPI, site: Site) -> None:
    roll_back(site)
    client = TestClient(app)
    [short] = client.get("/releases").json()
    assert short["state"] == "rolled_back"
    assert short["id"] == "release-0001"
    assert client.get("/releases/release-0001").json() == client.get("/releases/latest").json()


def test_a_record_that_cannot_be_read_is_unavailable(
    app: FastAPI, site: Site, tmp_path: Path
) -> None:
    (tmp_path / "promotions.db").write_bytes(b"nothing that SQLite knows" * 100)
    with pytest.raises(Refused) as refusal:
        TestClient(app).get("/releases")
    assert refusal.value.status == 503


def test_the_page_runs_nothing_inline(app: FastAPI) -> None:
    response = TestClient(app).get("/releases/page")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "<script>" not in response.text
    assert "onload" not in response.text


@pytest.fixture
def address(app: FastAPI) -> Iterator[str]:
    chromium()
    with running(app) as url:
        yield f"{url}/releases/page"


@pytest.fixture
def guarded(tmp_path: Path, site: Site) -> Iterator[tuple[str, str, str]]:
    """Return the address of a gateway with API keys, the key of a user and of an operator."""
    home = Home(tmp_path)
    keys = Keys(home.api_keys)
    user, operator = keys.add("ann", "user"), keys.add("root", "operator")
    app = make_app(home, fast(), ledger=site.ledger, pages=[release_routes(home, site.ledger)])
    with running(app) as url:
        yield url, user, operator


def test_with_keys_the_page_is_open_and_its_data_an_operators(
    guarded: tuple[str, str, str],
) -> None:
    url, user, operator = guarded
    for name in ("page", "page.css", "page.js"):
        with urllib.request.urlopen(f"{url}/releases/{name}", timeout=60) as reply:
            assert reply.status == 200
    statuses = [call(f"{url}/releases", key=key)[0] for key in ("", user, operator)]
    assert statuses == [401, 403, 200]


@pytest.mark.slow
def test_an_operator_gives_the_page_a_key_once(
    guarded: tuple[str, str, str], site: Site, tmp_path: Path
) -> None:
    roll_back(site)
    url, user, operator = guarded
    with Browser(tmp_path / "browser") as browser:

        def give(key: str) -> None:
            browser.until("!document.getElementById('entry').hidden")
            browser.run(f"document.getElementById('key').value = '{key}'")
            browser.run("document.querySelector('#entry button').click()")

        browser.open(f"{url}/releases/page")
        give(user)
        browser.until("document.body.innerText.includes('not an operator')")
        give(operator)
        browser.until("document.querySelectorAll('#events li').length > 2")
        browser.open(f"{url}/releases/page")
        browser.until("document.querySelectorAll('#events li').length > 2")
        assert operator not in browser.run("document.documentElement.outerHTML")


@pytest.mark.slow
def test_a_person_reads_why_a_release_went_back(address: str, site: Site, tmp_path: Path) -> None:
    roll_back(site)
    with Browser(tmp_path / "browser") as browser:
        browser.open(address)
        browser.until("document.querySelectorAll('#events li').length > 2")
        text = browser.run("document.body.innerText")
    assert "rolled back" in text
    assert "errors: worse than the champion by more than 0.3" in text
    assert "Quality is not measured" in text


@pytest.mark.slow
def test_a_person_sees_every_arm_of_an_experiment(tmp_path: Path) -> None:
    site = Site(tmp_path, versions=4)
    site.controller.clock = lambda: time.time() + 60
    site.experiment(SETTINGS.model_copy(update={"alpha": 0.01}))
    site.key = lambda number: "stuffer" if number % 3 == 0 else f"key-{number % 20}"
    for _ in range(6):
        site.send(250, (0.02, 0.02, 0.02, 0.9), (0.5, 0.5, 0.7, 0.5))
        site.tick()
    app = FastAPI()
    app.include_router(release_routes(Home(tmp_path), site.ledger))
    with running(app) as url, Browser(tmp_path / "browser") as browser:
        browser.open(f"{url}/releases/page")
        browser.until("document.querySelectorAll('#arms section').length == 3")
        text = browser.run("document.body.innerText")
    for line in (
        "Versions 2, 3, 4 beside version 1, experiment",
        "Version 4: dropped",
        "verified answers: champion 0.",
        "Version 4: errors: worse than the champion",
        "API key stuffer sent",
        "more users do not count",
    ):
        assert line in text
