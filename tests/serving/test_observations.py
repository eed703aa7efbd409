"""The record of answered requests: what is recorded stays, and is read back as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from serving.gateway import recorder
from serving.gateway.candidates import Candidates
from serving.gateway.observations import Feedback, Observation, Observations
from tests.serving.gateway_server import eventually

ROW = Observation("chatcmpl-1", 1.5, 3, "challenger", 0.05, "r1", 2, "u", "k", 0.1, 0.4, 12, 30)


@pytest.fixture
def observations(tmp_path: Path) -> Observations:
    return Observations(tmp_path / "new" / "observations.db")


def test_observations_are_read_in_order_from_any_number_on(observations: Observations) -> None:
    rows = [ROW, Observation(*("two", 2.0, 1, "champion", 0.95, "", 0, "u", ""), None, 0.2, 5, 0,
                             "timeout", False, True)]  # fmt: skip
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
def test_no_row_can_be_changed_or_removed(observations: Observations, statement: str) -> None:
    observations.append([ROW, Feedback("chatcmpl-1", 2.0, "k", "u", 0.0)])
    with (
        closing(sqlite3.connect(observations.path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)


def test_a_file_that_was_moved_away_gets_no_more_rows(observations: Observations) -> None:
    observations.append([ROW])
    observations.path.rename(observations.path.with_name("kept.db"))
    observations.append([replace(ROW, response="after")])
    assert [row.response for _, row in observations.read()] == ["after"]


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
