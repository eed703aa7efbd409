"""The running sum of a release: a process that continues it knows what one knows that reads all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from math import exp
from pathlib import Path

import pytest

from artifacts.hashing import hash_data
from evaluation.statistics.online.confidence_sequence import log_capital, mean_sequence
from serving.experiment.guardrail import Guardrail, HarmSequence
from serving.gateway.observations import Observations
from serving.release import arms as arms_module
from serving.release.arms import Arms
from tests.serving.traffic import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Return a home with an experiment whose first 900 observations are summed."""
    monkeypatch.setattr(arms_module, "EVERY", 100)
    site = Site(tmp_path, versions=3)
    site.experiment()
    site.send(900, (0.0, 0.1, 0.0), (0.5, 0.5, 0.6))
    arms = Arms(site.last())
    arms.follow(site.last(), site.observations)
    arms.save(site.last(), site.observations)
    site.send(300, (0.0, 0.1, 0.0), (0.5, 0.5, 0.6))
    return site


class Counting(Observations):
    """Counts the rows that are read."""

    rows = 0

    def read(self, after: int = 0, release: str | None = None):  # type: ignore[no-untyped-def]
        for row in super().read(after, release):
            self.rows += 1
            yield row


def followed(site: Site) -> tuple[Arms, int]:
    """Return the arms of a process that starts now, and how many rows it has read."""
    observations, arms = Counting(site.observations.path), Arms(site.last())
    arms.follow(site.last(), observations)
    return arms, observations.rows


def facts(arms: Arms) -> object:
    return [
        (own.harms(), own.arms(), own.units, own.ratio_p_value(), own.pairs(0))
        for own in arms.comparisons.values()
    ]


def test_a_process_that_starts_again_reads_only_what_is_new(site: Site) -> None:
    continued, rows = followed(site)
    assert rows == 300
    site.observations.path.with_suffix(".sum.json").unlink()
    whole, rows = followed(site)
    assert rows == 1200
    assert json.dumps(continued.state(), sort_keys=True) == json.dumps(
        whole.state(), sort_keys=True
    ) or facts(continued) == facts(whole)


def change_file(site: Site) -> None:
    file = site.observations.path.with_suffix(".sum.json")
    file.write_text(file.read_text().replace('\\"requests\\": 900', '\\"requests\\": 901'))


def lacking(site: Site) -> None:
    """Write a sum without a part, but with the right hash."""
    file = site.observations.path.with_suffix(".sum.json")
    text = json.loads(file.read_text())["sum"].replace('"watches"', '"guards"')
    file.write_text(json.dumps({"hash": hash_data(text), "sum": text}))


def cut_file(site: Site) -> None:
    file = site.observations.path.with_suffix(".sum.json")
    file.write_text(file.read_text()[:1000])


def change_row(site: Site) -> None:
    with sqlite3.connect(site.observations.path) as connection:
        connection.execute("DROP TRIGGER observations_never_changed")
        connection.execute("UPDATE observations SET error = 'engine' WHERE number = 5")


def other_database(site: Site) -> None:
    rows = [row for _, row in site.observations.read()]
    site.observations.path.unlink()
    site.observations.append(rows[600:])


@pytest.mark.parametrize("damage", [change_file, lacking, cut_file, change_row, other_database])
def test_a_sum_that_does_not_agree_with_the_record_is_not_used(
    site: Site, damage: Callable[[Site], None]
) -> None:
    damage(site)
    arms, rows = followed(site)
    assert rows == arms.requests == len(list(site.observations.read()))


def test_a_sum_by_other_code_is_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.release.checkpoint.hash_modules", lambda *_: "other code")
    assert followed(site)[1] == len(list(site.observations.read()))


def test_the_sum_of_another_release_is_not_used(site: Site) -> None:
    site.releases.append(site.last().last, "aborted", {"reasons": ["by hand"]})
    site.experiment()
    site.send(50)
    assert followed(site)[1] == 50


def test_a_sequence_in_parts_is_the_sequence_at_once() -> None:
    values = [0.1 * (n % 11) - 0.5 for n in range(400)]
    guardrail = Guardrail("errors", margin=0.05)
    parts = HarmSequence(guardrail)
    for number, value in enumerate(values):
        parts.add(value)
        if number % 90 == 0:
            state, parts = json.loads(json.dumps(parts.state())), HarmSequence(guardrail)
            parts.restore(state)
    harm = parts.harm(0.05, 0.05)
    both = [log_capital([(1 + sign * v) / 2 for v in values], (1 + sign * 0.05) / 2)[-1]
            for sign in (1, -1)]  # fmt: skip
    assert [harm.p_value, harm.cleared_p] == pytest.approx([min(1, exp(-each)) for each in both])
    assert harm.interval == pytest.approx(mean_sequence(values, -1, 1, alpha=0.1))
