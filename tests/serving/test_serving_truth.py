"""Health, lists of models, answers and `ratchet status` name the same version, in every state."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cli.status import show_status
from resources.config.release import Strategy
from resources.config.serving import Breaker
from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.releases import Releases
from resources.settings import Settings
from tests.browser import Browser
from tests.serving.faulty_engine import Faulty
from tests.serving.gateway_server import CHAT, ask, call, eventually, promote, running
from tests.serving.test_release_gateway import SETTINGS, gateway
from tests.serving.traffic import open_release

PATIENT = SETTINGS.model_copy(update={"bake_s": 600.0})


@pytest.fixture
def two(home: Home, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home whose champion `new` follows `old`; it is also the environment's."""
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    return home


def deploy(home: Home, strategy: Strategy = "gradual") -> None:
    open_release(Ledger(home.ledger), Releases(home.ledger), PATIENT, 2, strategy=strategy)


def versions(url: str) -> dict[str, object]:
    """Return the version that each place names as the one that answers."""
    states = call(f"{url}/models")[1]["versions"]
    [champion] = [row["checkpoint"] for row in states if row["champion"]]
    names = {row["id"]: row["root"] for row in call(f"{url}/v1/models")[1]["data"]}
    [listed] = [name for name in ("old", "new") if names.get(name) == names["champion"]]
    return {
        "answer": ask(url)[1]["model"],
        "answer to its name": ask(url, model="champion")[1]["model"],
        "/health/ready": call(f"{url}/health/ready")[1]["champion"],
        "/models": champion,
        "/v1/models": listed,
    }


def status() -> str:
    """Return the table of `ratchet status`."""
    text = StringIO()
    show_status(Settings.read(), Console(file=text, width=200))
    return " ".join(text.getvalue().split())


@pytest.mark.slow
def test_every_place_names_the_version_that_answers(two: Home) -> None:
    with running(gateway(two)) as url:
        eventually(lambda: call(f"{url}/health/ready")[1].get("champion") == "new")
        assert set(versions(url).values()) == {"new"}
        deploy(two)
        releases = f"{url}/releases/latest"
        assert call(f"{releases}/pause", {"reason": "a holiday"})[1]["state"] == "paused"
        assert call(f"{releases}/pause", {})[0] == 409
        assert call(f"{releases}/resume", {})[1]["state"] == "running"
        eventually(lambda: call(f"{url}/health/ready")[1]["champion"] == "old")
        assert "deployed version 1; release-0001 of version 2 is running" in status()
        assert call(f"{releases}/abort", {"reason": "no"})[1]["state"] == "aborted"
        eventually(lambda: set(versions(url).values()) == {"old"})
        assert "deployed version 1; release-0001 of version 2 is aborted" in status()
        deploy(two, "immediate")
        eventually(lambda: set(versions(url).values()) == {"new"})
        eventually(lambda: "version 2; release-0002 of version 2 is promoted" in status())


def test_ready_is_503_while_every_answer_is(two: Home) -> None:
    broken = Faulty(new={"fail"}, old={"fail"})
    breaker = Breaker(consecutive=1, open_s=600.0, probes=1)
    with running(gateway(two, broken, breaker=breaker)) as url:
        eventually(lambda: call(f"{url}/health/ready")[0] == 200)
        for _ in range(2):
            assert ask(url, messages=[{"role": "user", "content": "fail"}])[0] == 503
        assert ask(url, messages=CHAT)[0] == 503
        code, reply = call(f"{url}/health/ready")
        assert (code, reply["error"]["code"]) == (503, "breaker_open")
        states = call(f"{url}/models")[1]["versions"]
        assert {row["breaker"] for row in states} == {"open"}


@pytest.mark.slow
def test_an_operator_moves_a_release_on_the_page(two: Home, tmp_path: Path) -> None:
    images = Path(os.environ.get("IMAGES") or tmp_path)
    with running(gateway(two)) as url, Browser(tmp_path / "browser") as browser:
        deploy(two)

        def press(name: str, state: str) -> None:
            browser.run(f"document.querySelector('[data-move={name}]').click()")
            browser.until(f"document.getElementById('state').textContent === '{state}'")
            browser.picture(images / f"{state}.png", whole=True)

        browser.open(url)
        browser.until("document.getElementById('state').textContent === 'running'")
        assert browser.run("location.pathname") == "/releases/page"
        browser.picture(images / "open.png", whole=True)
        press("pause", "paused")
        press("resume", "running")
        browser.run("window.confirm = () => true")
        press("abort", "aborted")
        browser.until("document.getElementById('moves').hidden")
    assert Releases(two.ledger).all()[-1].state == "aborted"
