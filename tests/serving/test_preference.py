"""The preference page's server over real HTTP, and the folder that stores its choices.

Judging is blind and needs a token. Nothing is recorded twice or lost, and the reward reads the
choices.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluation.preference.contestants import Contestant
from evaluation.preference.pairs import make_pairs
from problems.columns import ProblemError
from rewards.battery.cases import CODE, MEDIAN
from rewards.choices import read_choices
from rewards.composite import Reward
from rewards.config import RewardConfig, Weights
from rewards.preference import Preferences
from sandbox.protocol import Report, Verdict
from serving.preference.app import make_app
from serving.preference.round import (
    AlreadyJudged,
    Round,
    RoundInfo,
    RoundInUse,
    begin,
    read_matches,
)
from tests.serving.gateway_server import running

TOKEN = "a token"
NAMES = ("chain-0001-step-30", "chain-0002-step-50")
ROOT = Path(__file__).parents[2]


def begun(folder: Path, tasks: int = 6) -> Path:
    contestants = [
        Contestant(
            name, {f"t/{i}": (f"def f():  # {number}\n    return {i}\n",) for i in range(tasks)}
        )
        for number, name in enumerate(NAMES)
    ]
    pairs, same = make_pairs(contestants, {f"t/{i}": f"Give {i}." for i in range(tasks)}, seed=3)
    begin(folder, RoundInfo(seed=3, contestants=dict.fromkeys(NAMES, "test"), same=same), pairs)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return begun(tmp_path / "a round")


@pytest.fixture
def page(folder: Path) -> Iterator[httpx.Client]:
    opened = Round(folder)
    with (
        running(make_app(opened, TOKEN)) as url,
        httpx.Client(base_url=url, headers={"x-ratchet-token": TOKEN}, timeout=60) as client,
    ):
        yield client
    opened.close()


def ask(page: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    return dict(page.post(path, json=body).raise_for_status().json())


def test_requests_without_the_token_are_refused(page: httpx.Client) -> None:
    tries = (
        ("GET", "/", ""),
        ("GET", "/?token=other", ""),
        ("POST", "/next", "other"),
        ("POST", f"/next?token={TOKEN}", ""),
        ("GET", "/docs", ""),
    )
    for method, path, token in tries:
        reply = httpx.request(
            method, page.base_url.join(path), headers={"x-ratchet-token": token}, timeout=60
        )
        assert reply.status_code == 403
        assert "ratchet prefer" in reply.text
    assert page.get("/", params={"token": TOKEN}).status_code == 200


def test_the_page_loads_only_its_own_scripts(
    page: httpx.Client,
) -> None:
    reply = page.get("/", params={"token": TOKEN})
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'" in policy
    assert "unsafe" not in policy
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "style=" not in reply.text
    assert "onclick" not in reply.text
    assert "<script src=" in reply.text


def test_the_page_does_not_reveal_the_contestants(page: httpx.Client) -> None:
    sent = [page.get("/", params={"token": TOKEN}).text, page.get("/page.js").text]
    state = ask(page, "/next", judge="ann")
    while state["pair"]:
        sent.append(json.dumps(state))
        state = ask(page, "/choose", judge="ann", pair=state["pair"]["id"], chosen="left")
    assert len(sent) == 8
    assert not any(name in text for name in NAMES for text in sent)


def test_every_judge_sees_every_pair_once(page: httpx.Client, folder: Path) -> None:
    seen: dict[str, list[str]] = {"ann": [], "bob": []}
    for judge, number in (("ann", 2), ("bob", 6), ("ann", 4)):
        for _ in range(number):
            pair = ask(page, "/next", judge=judge)["pair"]
            seen[judge].append(pair["id"])
            state = ask(page, "/choose", judge=judge, pair=pair["id"], chosen="tie")
    assert state == {
        "done": 6,
        "total": 6,
        "question": "Which answer would you rather have?",
        "pair": None,
    }
    assert sorted(seen["ann"]) == sorted(seen["bob"])
    assert len(set(seen["ann"])) == 6
    assert seen["ann"] != seen["bob"]


def test_repeated_and_unknown_choices_are_refused(page: httpx.Client, folder: Path) -> None:
    pair = ask(page, "/next", judge="ann")["pair"]["id"]
    codes = [
        page.post("/choose", json={"judge": "ann", "pair": p, "chosen": "left"}).status_code
        for p in (pair, pair, "none")
    ]
    assert codes == [200, 409, 404]
    assert len(read_choices(folder / "choices.jsonl")) == 1


@pytest.mark.parametrize(
    "body", [{"judge": " "}, {"judge": "x" * 41}, {"judge": "a\nb"}, {}, {"judge": "a", "more": 1}]
)
def test_an_invalid_judge_name_is_refused(page: httpx.Client, body: dict[str, Any]) -> None:
    assert page.post("/next", json=body).status_code == 400


def test_simultaneous_presses_are_one_choice(folder: Path) -> None:
    opened = Round(folder)
    pair = opened.next("ann")
    assert pair is not None

    def press(_: int) -> bool:
        try:
            opened.choose("ann", pair.id, "left")
        except AlreadyJudged:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(press, range(64))) == 1
    opened.close()
    assert len(read_choices(folder / "choices.jsonl")) == 1


def test_only_one_process_may_open_a_round(folder: Path) -> None:
    opened = Round(folder)
    with pytest.raises(RoundInUse, match=r"another process"):
        Round(folder)
    opened.close()
    Round(folder).close()


def test_a_truncated_choice_is_repeated(folder: Path) -> None:
    opened = Round(folder)
    pairs = [
        pair.id
        for _ in range(2)
        if (pair := opened.next("ann")) and opened.choose("ann", pair.id, "right")
    ]
    opened.close()
    whole = (folder / "choices.jsonl").read_bytes()
    (folder / "choices.jsonl").write_bytes(whole[:-20])
    again = Round(folder)
    torn = again.next("ann")
    assert again.done("ann") == 1
    assert torn is not None
    assert torn.id == pairs[1]
    again.choose("ann", torn.id, "right")
    again.close()
    assert len(read_choices(folder / "choices.jsonl")) == 2


WRITER = """
import sys
from pathlib import Path
from serving.preference.round import Round
opened = Round(Path(sys.argv[1]))
while pair := opened.next("ann"):
    opened.choose("ann", pair.id, "left")
    print(pair.id, flush=True)
"""


@pytest.mark.slow
def test_a_kill_loses_no_confirmed_choice(tmp_path: Path) -> None:
    folder = begun(tmp_path / "round", tasks=400)
    confirmed: list[str] = []
    for number in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert process.stdout
        confirmed += [process.stdout.readline().strip() for _ in range(5 + 7 * number)]
        process.send_signal(signal.SIGKILL)
        confirmed += [line.strip() for line in process.stdout.read().split("\n")[:-1]]
        process.wait()
    opened = Round(folder)
    stored = [met.pair for met in read_matches(folder)]
    opened.close()
    assert len(confirmed) >= 62
    assert set(confirmed) <= set(stored)
    assert len(set(stored)) == len(stored)


def test_a_started_round_cannot_change(folder: Path) -> None:
    begun(folder)
    with pytest.raises(ProblemError, match="another round"):
        begun(folder, tasks=5)


def test_a_choice_of_an_unknown_pair_is_reported(folder: Path) -> None:
    (folder / "choices.jsonl").write_text(
        '{"problem_id": "t/0", "left": "a", "right": "b", "chosen": "tie", "judge": "x"}\n'
    )
    with pytest.raises(ValueError, match=r"choices.jsonl: row 0: t/0: "):
        read_matches(folder)


def test_the_reward_reads_the_choices_of_the_page(tmp_path: Path) -> None:
    task, good = MEDIAN, CODE["call"].reference
    contestants = [
        Contestant("a", {task.problem_id: (good,)}),
        Contestant("b", {task.problem_id: ("def median(xs): ...",)}),
    ]
    pairs, _ = make_pairs(contestants, {task.problem_id: task.statement}, seed=0)
    begin(tmp_path, RoundInfo(seed=0, contestants={"a": "", "b": ""}), pairs)
    opened = Round(tmp_path)
    for judge in ("ann", "bob", "eve"):
        left, _ = pairs[0].sides(0, judge)
        opened.choose(judge, pairs[0].id, "left" if left == good else "right")
    opened.close()
    file = tmp_path / "choices.jsonl"
    value = Preferences(read_choices(file)).value(task.problem_id, good)
    reward = Reward(RewardConfig(weights=Weights(preference=1.0), preferences=str(file)))
    report = Report("job", Verdict.AC, (), 0.0, 0.0, 0)
    assert value
    assert value > 0.5
    assert reward.score(task, good, report).components["preference"] == value
    assert {met.won for met in read_matches(tmp_path)} == {"a"}
