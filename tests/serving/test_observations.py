"""The record of answered requests: what is recorded stays, and is read back as it was."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from serving.gateway import recorder
from serving.gateway.candidates import Candidates
from serving.gateway.observations import Feedback, Observations
from tests.resources.postgres import Server, postgres
from tests.serving.gateway_server import eventually
from tests.serving.traffic import ANSWER

ROW = replace(
    ANSWER, response="chatcmpl-1", time=1.5, version=3, arm="challenger", release="r1", step=2,
    key="k", completion_tokens=30,
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Observations:
    return Observations(tmp_path / "new" / "observations.db")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def observations(request: pytest.FixtureRequest, tmp_path: Path) -> Observations:
    """An empty record: in a file, then on a real server."""
    if request.param == "sqlite":
        return Observations(tmp_path / "new" / "observations.db")
    url = request.getfixturevalue("server").fresh(f"observations_{time.time_ns()}")
    return Observations(tmp_path / "observations.db", url)


def test_observations_are_read_in_order_from_any_number_on(observations: Observations) -> None:
    other = replace(
        ANSWER, response="two", release="", first_token_s=None, error="timeout", verified=False,
        shadow=True,
    )  # fmt: skip
    rows = [ROW, other]
    observations.append(rows)
    assert [row for _, row in observations.read()] == rows
    assert list(observations.read(after=1)) == [(2, rows[1])]
    assert [row for _, row in observations.read(release="r1")] == [ROW]


def test_every_vote_is_kept_in_order(observations: Observations) -> None:
    votes = [Feedback("chatcmpl-1", 2.0, "k", "u", value) for value in (1.0, 0.0)]
    observations.append([ROW, *votes])
    assert observations.votes_on("r1") == votes


def test_votes_are_found_by_the_release_of_their_response(observations: Observations) -> None:
    votes = [Feedback(name, 2.0, "k", "u", 1.0) for name in ("chatcmpl-1", "other", "unknown")]
    observations.append([ROW, replace(ROW, response="other", release="r2"), *votes])
    assert observations.votes_on("r1") == votes[:1]


def test_a_response_is_found_by_its_id(observations: Observations) -> None:
    assert observations.of("chatcmpl-1") is None
    observations.append([ROW])
    assert observations.of("chatcmpl-1") == ROW
    assert observations.of("other") is None


def test_verdicts_are_the_first_of_each_user_who_got_the_version(
    observations: Observations,
) -> None:
    first = replace(ROW, unit="b", verified=True)
    others = [
        replace(first, verified=False),
        replace(first, unit="c", shadow=True),
        replace(first, unit="d", arm="named"),
        replace(first, unit="e", version=4),
        replace(first, unit="f", verified=None),
        replace(first, unit="a", verified=False),
    ]
    observations.append([first, *others])
    assert observations.verdicts(3) == [True, False]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE observations SET error = ''",
        "DELETE FROM observations",
        "INSERT OR REPLACE INTO observations SELECT * FROM observations",
        "UPDATE feedback SET value = 1",
        "DELETE FROM feedback",
    ],
)
def test_no_row_can_be_changed_or_removed(file: Observations, statement: str) -> None:
    file.append([ROW, Feedback("chatcmpl-1", 2.0, "k", "u", 0.0)])
    with (
        closing(sqlite3.connect(file.path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    ["UPDATE observations SET error = ''", "DELETE FROM feedback", "TRUNCATE observations"],
)
def test_no_row_of_a_server_can_be_changed_or_removed(
    server: Server, tmp_path: Path, statement: str
) -> None:
    import psycopg2

    url = server.fresh(f"kept_{time.time_ns()}")
    Observations(tmp_path / "o.db", url).append([ROW, Feedback("chatcmpl-1", 2.0, "k", "u", 0.0)])
    with (
        closing(psycopg2.connect(url)) as connection,
        pytest.raises(psycopg2.errors.RaiseException, match="append-only"),
    ):
        connection.cursor().execute(statement)


def test_totals_and_the_last_day_count_each_row_once(observations: Observations) -> None:
    failed = replace(ROW, response="two", unit="v", error="timeout", verified=False)
    observations.append([ROW, failed])
    count, numbers, *_ = observations.totals("r1", 9)
    assert (count, numbers) == (2, 3)
    units, failures, declined, mean, variance, tested, wrong = observations.last_day(10.0)
    assert (units, failures, declined, mean, variance) == (2, 0.5, 0, 30, 0)
    assert (tested, wrong) == (1, 1)


def test_a_file_that_was_moved_away_gets_no_more_rows(file: Observations) -> None:
    file.append([ROW])
    file.path.rename(file.path.with_name("kept.db"))
    file.append([replace(ROW, response="after")])
    assert [row.response for _, row in file.read()] == ["after"]


def test_while_the_disk_takes_none_a_limited_number_of_rows_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_WAITING", 10)
    monkeypatch.setattr(recorder, "AGAIN_S", 0.01)
    (tmp_path / "file").touch()  # where the folder should be
    kept = recorder.Recorder(
        Observations(tmp_path / "file" / "rows.db"), Candidates(tmp_path / "candidates.db")
    )
    for _ in range(10):
        kept.add(ROW)
    eventually(lambda: kept._kept == 10)
    for _ in range(100):
        kept.add(ROW)
    assert kept.lost == 100
    kept.close()
    assert kept.lost == 110
