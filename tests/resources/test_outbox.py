"""The record of sent messages: each notice is claimed once, by one process."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resources.outbox import CLAIMED_S, KEPT_S, QUIET_S, Notice, Outbox
from tests.resources.postgres import Server

PROMOTION = Notice("promotion", "entry-1", "version 1 is champion", "", 20.0)
DISK = Notice("disk", "disk", "disk is not well", "")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def outbox(request: pytest.FixtureRequest, tmp_path: Path) -> Outbox:
    """Return a record in which the receiver OPS is known since 10: in a file, then on a server."""
    place: Path | str = tmp_path / "records.db"
    if request.param == "postgres":
        server: Server = request.getfixturevalue("server")
        place = server.fresh(f"outbox_{time.time_ns()}")
    made = Outbox(place)
    assert made.claim("OPS", [], 10.0) == []
    return made


def told(outbox: Outbox, notices: list[Notice], now: float) -> list[str]:
    due = outbox.claim("OPS", notices, now)
    for notice in due:
        outbox.settle("OPS", notice, now, sent=True)
    return [notice.key for notice in due]


def test_a_notice_is_told_once(outbox: Outbox) -> None:
    assert told(outbox, [PROMOTION], 30.0) == ["entry-1"]
    assert told(outbox, [PROMOTION], 31.0) == []


def test_a_notice_that_holds_for_ever_is_not_told_again_after_months(outbox: Outbox) -> None:
    assert told(outbox, [PROMOTION], 30.0) == ["entry-1"]
    assert [told(outbox, [PROMOTION], 31.0 + KEPT_S + day) for day in (0.0, 1.0)] == [[], []]


def test_of_many_senders_one_gets_a_notice(outbox: Outbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        claims = pool.map(lambda _: outbox.claim("OPS", [PROMOTION], 30.0), range(8))
    assert sum(map(len, claims)) == 1


def test_what_was_before_a_receiver_was_known_is_not_told(outbox: Outbox) -> None:
    assert told(outbox, [Notice("refusal", "entry-0", "", "", 9.0), PROMOTION], 30.0) == ["entry-1"]


def test_a_message_of_a_killed_sender_is_sent_by_another(outbox: Outbox) -> None:
    assert outbox.claim("OPS", [PROMOTION], 30.0)
    assert told(outbox, [PROMOTION], 30.0 + CLAIMED_S) == []
    assert told(outbox, [PROMOTION], 31.0 + CLAIMED_S) == ["entry-1"]


def test_a_message_that_was_not_taken_is_sent_again(outbox: Outbox) -> None:
    [notice] = outbox.claim("OPS", [PROMOTION], 30.0)
    outbox.settle("OPS", notice, 30.0, sent=False)
    assert told(outbox, [PROMOTION], 31.0) == ["entry-1"]


def test_a_state_that_comes_back_is_told_again_but_not_while_it_flaps(outbox: Outbox) -> None:
    assert told(outbox, [DISK], 30.0) == ["disk"]
    assert told(outbox, [DISK], 40.0) == []
    assert told(outbox, [], 50.0) == []
    assert told(outbox, [DISK], 60.0) == []
    assert told(outbox, [], 70.0) == []
    assert told(outbox, [DISK], 71.0 + QUIET_S) == ["disk"]


def test_another_host_does_not_end_a_state(outbox: Outbox) -> None:
    here = Notice("disk", "a disk", "disk is not well", "")
    for notice in outbox.claim("OPS", [here], 30.0, "a "):
        outbox.settle("OPS", notice, 30.0, sent=True)
    assert outbox.claim("OPS", [], 31.0, "b ") == []
    assert outbox.claim("OPS", [here], 32.0 + QUIET_S, "a ") == []
