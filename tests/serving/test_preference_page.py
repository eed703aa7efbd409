"""The preference page in a real browser: what a judge reads, what they press, what stays hidden.

Skipped if no browser is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.preference.contestants import Contestant
from evaluation.preference.pairs import make_pairs
from rewards.choices import read_choices
from serving.preference.app import make_app
from serving.preference.round import Round, RoundInfo, begin
from tests.browser import Browser, chromium
from tests.serving.gateway_server import running

HOSTILE = (
    "</pre><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\n"
    "\u202e{{ 7 * 7 }}<b>bold</b>"
)
TOKEN = "a-token"

pytestmark = pytest.mark.slow


@pytest.fixture
def round(tmp_path: Path) -> Iterator[Round]:
    tasks = [f"t/{i}" for i in range(4)]
    contestants = [
        Contestant(name, {task: (f"{HOSTILE} {name[0]} {task}",) for task in tasks})
        for name in ("old-model", "new-model")
    ]
    pairs, _ = make_pairs(
        contestants,
        {task: f"<script>window.hacked = 3</script> What of {task}?" for task in tasks},
        seed=1,
    )
    begin(tmp_path / "round", RoundInfo(seed=1, contestants={}), pairs)
    opened = Round(tmp_path / "round")
    yield opened
    opened.close()


@pytest.fixture
def address(round: Round) -> Iterator[str]:
    chromium()
    with running(make_app(round, TOKEN)) as url:
        yield f"{url}/?token={TOKEN}"


def enter(browser: Browser, address: str, judge: str) -> None:
    browser.open(address)
    browser.until("document.activeElement.id === 'name'")
    browser.type(judge)
    browser.run("document.querySelector('#enter button').click()")
    browser.until("!document.querySelector('#pair').hidden")


def test_a_judge_decides_by_keyboard_and_resumes(
    round: Round, address: str, tmp_path: Path
) -> None:
    with Browser(tmp_path / "browser") as browser:
        enter(browser, address, "ann")
        for number, key in enumerate(("ArrowLeft", "ArrowDown"), 1):
            browser.key(key)
            browser.until(f"document.querySelector('#count').textContent === '{number} of 4'")
        enter(browser, address, "ann")
        assert browser.run("document.querySelector('#count').textContent") == "2 of 4"
        for number, key in enumerate(("2", "0"), 3):
            browser.key(key)
            browser.until(f"document.querySelector('#count').textContent === '{number} of 4'")
        browser.until(
            "!document.querySelector('#end').hidden && document.querySelector('#choices').hidden"
        )
    assert [choice.chosen for choice in read_choices(round.folder / "choices.jsonl")] == [
        "left",
        "tie",
        "right",
        "tie",
    ]


def test_model_output_is_shown_as_plain_text(round: Round, address: str, tmp_path: Path) -> None:
    with Browser(tmp_path / "browser") as browser:
        enter(browser, address, "<img src=x onerror='window.hacked = 4'>"[:40])
        pair = round.next("<img src=x onerror='window.hacked = 4'>"[:40])
        assert pair is not None
        shown = browser.run(
            "['left', 'right'].map((name) => document.getElementById(name).textContent)"
        )
        assert sorted(shown) == sorted((pair.first, pair.second))
        assert "onerror" in shown[0]
        assert browser.run("document.getElementById('statement').textContent") == pair.statement
        assert browser.run("document.querySelectorAll('main img, main b, main script').length") == 0
        assert browser.run("typeof window.hacked") == "undefined"
        page = browser.run("document.documentElement.outerHTML")
        assert "old-model" not in page
        assert "new-model" not in page


def test_buttons_work_like_keys_and_a_stopped_server_is_reported(
    round: Round, address: str, tmp_path: Path
) -> None:
    with Browser(tmp_path / "browser", width=420, height=800) as browser:
        enter(browser, address, "bob")
        browser.run("document.querySelector('[data-chosen=right]').click()")
        browser.until("document.querySelector('#count').textContent === '1 of 4'")
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        browser.run("window.fetch = () => Promise.reject(new TypeError('gone'))")
        browser.key("ArrowLeft")
        browser.until("!document.querySelector('#trouble').hidden")
        assert "does not answer" in browser.run("document.querySelector('#trouble').textContent")
    assert len(read_choices(round.folder / "choices.jsonl")) == 1
