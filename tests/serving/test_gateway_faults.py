"""What clients see when a version fails, hangs or is busy, and when they leave."""

from __future__ import annotations

import http.client
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from resources.config.serving import Breaker, Serving
from resources.home import Home
from resources.registry.ledger import Entry
from serving.gateway.observations import Observation, Observations
from serving.gateway.routing import Router
from tests.deploy.monitoring import named
from tests.serving.faulty_engine import Faulty, FaultyEngine
from tests.serving.gateway_server import (
    ask,
    call,
    content,
    eventually,
    fast,
    promote,
    running,
)

Start = Callable[[Faulty, Serving], str]


@pytest.fixture
def start(home: Home, checkpoints: dict[str, Path]) -> Iterator[Start]:
    """Start a gateway with the versions old and new, of which new is champion."""
    from serving.gateway.app import make_app

    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    with ExitStack() as stack:
        yield lambda faulty, settings: stack.enter_context(
            running(make_app(home, settings, open_engine=faulty), settings)
        )


def prompt(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def observed(home: Home, count: int) -> list[Observation]:
    rows = Observations(home.observations)
    eventually(lambda: len(list(rows.read())) >= count)
    return [row for _, row in rows.read()]


@pytest.mark.parametrize("fault", ["fail", "crash"])
def test_a_version_that_fails_is_replaced_by_the_one_before(
    start: Start, home: Home, fault: str
) -> None:
    url = start(Faulty(new={fault}), fast())
    status, reply = ask(url, messages=prompt(fault))
    assert (status, reply["model"]) == (200, "old")
    failed, answered = observed(home, 2)
    assert (failed.version, failed.arm, failed.error) == (2, "champion", "engine")
    assert (answered.version, answered.arm, answered.error) == (1, "fallback", "")


def test_when_every_version_fails_the_client_gets_one_line(start: Start) -> None:
    status, reply = ask(start(Faulty(new={"fail"}, old={"fail"}), fast()), messages=prompt("fail"))
    assert status == 503
    assert reply["error"]["message"] == "the engine was told to fail"


@pytest.mark.parametrize(
    ("path", "body", "begin"),
    [
        ("chat/completions", {"messages": prompt("break"), "max_tokens": 9}, "data: {"),
        ("responses", {"input": "break", "max_output_tokens": 9}, "event: error\ndata: {"),
    ],
)
def test_a_stream_that_breaks_ends_with_an_error_and_not_with_done(
    start: Start, path: str, body: dict[str, Any], begin: str
) -> None:
    url = start(Faulty(new={"break"}), fast())
    data = json.dumps(body | {"stream": True}).encode()
    request = urllib.request.Request(f"{url}/v1/{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        last = reply.read().decode().strip().split("\n\n")[-1]
    assert last.startswith(begin)
    assert "told to break" in last


@pytest.mark.parametrize(
    ("body", "status", "recorded"),
    [({}, 504, "timeout"), ({"timeout": 60.0}, 504, "timeout"), ({"timeout": 0.2}, 408, "gone")],
)
def test_a_version_answers_for_a_stall_but_not_for_the_clients_own_limit(
    start: Start, home: Home, body: dict[str, float], status: int, recorded: str
) -> None:
    url = start(Faulty(new={"hang"}), fast(stall_s=1.0))
    got, reply = call(f"{url}/generate", {"prompt": "hang", **body})
    assert (got, reply["error"]["code"]) == (status, "timeout")
    assert observed(home, 1)[-1].error == recorded


def test_a_model_that_returns_no_numbers_fails_and_is_replaced(start: Start) -> None:
    status, reply = ask(start(Faulty(new={"nan"}), fast()), messages=prompt("nan"))
    assert (status, reply["model"]) == (200, "old")


def test_a_failing_version_is_left_alone_and_then_probed(start: Start) -> None:
    faulty = Faulty(new={"fail"})
    url = start(faulty, fast(breaker=Breaker(consecutive=2, open_s=3.0, probes=1)))
    for _ in range(6):
        assert ask(url, messages=prompt("fail"))[1]["model"] == "old"
    assert faulty.opened["new"].asked == 2
    faulty.opened["new"].faults = frozenset()
    eventually(lambda: ask(url, messages=prompt("fail"))[1]["model"] == "new")


def test_a_full_queue_refuses_with_a_time_to_try_again(start: Start) -> None:
    url = start(Faulty(new={"hang"}), fast(at_once=1, waiting=1, stall_s=2.0, deadline_s=3.0))
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: ask(url, messages=prompt("hang")), range(4)))
    refused = [reply for status, reply in replies if status == 429]
    assert len(refused) == 2
    assert all(r["error"]["code"] == "overloaded" for r in refused)


def test_the_work_stops_when_the_client_leaves(start: Start, home: Home) -> None:
    faulty = Faulty(new={"hang"})
    url = start(faulty, fast())
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    body = json.dumps({"messages": prompt("hang"), "max_tokens": 90})
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    engine = eventually(lambda: faulty.opened.get("new"))
    eventually(lambda: engine._active)
    connection.close()
    eventually(lambda: not engine._active)
    [row] = observed(home, 1)
    assert row.error == "gone"


def test_a_version_is_unloaded_after_its_last_request(start: Start) -> None:
    url = start(Faulty(), fast())
    whole = content(ask(url, model="old", max_tokens=60)[1])
    with ThreadPoolExecutor(9) as pool:
        answers = [pool.submit(ask, url, model="old", max_tokens=60) for _ in range(8)]
        assert call(f"{url}/models/old/unload", {})[0] == 409  # it is the fallback
        assert all(content(a.result()[1]) == whole for a in answers)


@pytest.mark.slow
def test_many_switches_of_the_champion_lose_no_request(start: Start, home: Home) -> None:
    from resources.registry.ledger import Ledger

    url = start(Faulty(), fast())
    with ThreadPoolExecutor(4) as pool:
        stop: list[bool] = []

        def client(number: int) -> list[int]:
            statuses = []
            while not stop:
                statuses.append(ask(url, max_tokens=8)[0])
            return statuses

        clients = [pool.submit(client, number) for number in range(3)]
        ledger = Ledger(home.ledger)
        for turn in range(3):
            ledger.rollback(f"back-{turn}")
            eventually(lambda: ask(url)[1]["model"] == "old")
            promote(home, "new", Path(ledger.history()[1].path))
            eventually(lambda: ask(url)[1]["model"] == "new")
        stop.append(True)
        statuses = [status for each in clients for status in each.result()]
    assert set(statuses) == {200}
    assert len(statuses) > 6


def test_observations_that_cannot_be_written_are_counted_and_answers_go_on(
    start: Start, home: Home
) -> None:
    url = start(Faulty(), fast())
    home.observations.write_bytes(b"no database" * 100)
    assert ask(url)[0] == 200

    def lost() -> bool:
        with urllib.request.urlopen(f"{url}/metrics") as page:
            return "ratchet_observations_lost 1.0" in page.read().decode()

    eventually(lost)
    status, reply = call(f"{url}/feedback", {"response": "x", "value": "accepted"})
    assert status == 503
    assert reply["error"]["code"] == "not_recorded"


def test_a_scrape_has_every_series_of_the_alert_rules_and_the_board(start: Start) -> None:
    url = start(Faulty(), fast())
    assert ask(url)[0] == 200
    assert ask(url, model="unknown")[0] == 404
    with urllib.request.urlopen(f"{url}/metrics") as page:
        text = page.read().decode()
    assert named(gateway=True) - set(re.findall(r"^(\w+)[{ ]", text, re.MULTILINE)) == set()
    assert 'ratchet_arm_share{version="2"} 1.0' in text


def test_an_engine_that_ends_is_replaced_while_the_version_before_answers(
    start: Start, home: Home
) -> None:
    faulty = Faulty()
    url = start(faulty, fast())
    assert ask(url)[1]["model"] == "new"
    first = faulty.opened["new"]
    first.close()  # its thread ends, as a server process does that was killed
    assert ask(url)[0] == 200
    eventually(lambda: faulty.opened["new"] is not first)
    eventually(lambda: ask(url)[1]["model"] == "new")
    assert {row.error for row in observed(home, 2)} <= {"", "engine"}


def test_an_engine_that_ends_is_out_of_the_release_before_another_has_started(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    from serving.gateway.app import champion_router, make_app
    from serving.gateway.catalog import Catalog

    catalogs: list[Catalog] = []
    may_start = Event()
    faulty = Faulty()

    def open_engine(entry: Entry, settings: Serving) -> FaultyEngine:
        if entry.checkpoint in faulty.opened:
            may_start.wait(60)
        return faulty(entry, settings)

    def router_of(catalog: Catalog) -> Router:
        catalogs.append(catalog)
        return champion_router(catalog)

    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    app = make_app(home, fast(), open_engine=open_engine, router_of=router_of)
    with running(app, fast()):
        eventually(lambda: 2 in catalogs[0].loaded)
        faulty.opened["new"].close()
        eventually(lambda: 2 not in catalogs[0].loaded)
        may_start.set()
        eventually(lambda: 2 in catalogs[0].loaded)
