"""A day of a team's home in minutes: daemon, schedule, gateway with clients, two nights, and
everything around them that fails. One page at the end says what was lost. A stopped test continues
at its last step.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from artifacts.manifest import code_version
from resources.finding import kept_findings
from serving.gateway.observations import Observations
from tests.journeys.day_host import Day
from tests.journeys.demo_run import now_at, orphans
from tests.small_disk import full

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3 * 3600)]
GROWTH, SLACK_MIB = 1.3, 60.0  # of disk and memory from one night to the next
PLACE = Path(".ratchet/soak").absolute() / f"day-{code_version()}"


def the_first_night_begins(day: Day) -> None:
    def reports() -> bool:  # it counts nights from then on
        kept = kept_findings(day.home)
        return bool(kept and "reported" in kept[1]["daemon"].found)

    day.wait(lambda: reports() or day.runs())
    day.night()


def errors_of_the_store(day: Day) -> None:
    day.wait(lambda: now_at(day.home) == "verified_problems")
    day.faults(0.2)
    day.say("one in five requests to the object store fails from now on")
    day.kill_one()


def postgres_away_in_a_night(day: Day) -> None:
    day.wait(lambda: "checkpoint" in now_at(day.home))
    postgres_away(day)


def postgres_away(day: Day) -> None:
    day.server.stop()
    day.say("Postgres is away")
    day.stay(20)
    day.server.start()
    day.say("Postgres is back")


def kills(day: Day) -> None:
    for number in range(3):
        day.wait(partial(trained, day, number))
        day.kill_one()


def trained(day: Day, steps: int) -> bool:
    """Whether the newest training is past so many steps, or decided."""
    return day.step(1) > steps or day.decided() > 0


def the_first_night_ends(day: Day) -> None:
    day.until_decided(1)
    day.faults(0.0)
    day.measure()


def a_dead_gateway(day: Day) -> None:
    answered(day)
    day.kill("gateway")
    day.say("killed: gateway")
    day.clock(-3600)
    day.say("the clock steps back by an hour")
    day.stay(20)


def a_dead_daemon(day: Day) -> None:
    day.kill("daemon")
    day.say("killed: daemon")
    day.clock(3600)
    day.say("the clock steps forward by an hour")
    postgres_away(day)
    answered(day)


def answered(day: Day) -> None:
    """Wait for one more answer of the gateway."""
    before = len(day.answers())
    day.wait(lambda: any(each["status"] == 200 for each in day.answers()[before:]))
    day.say("the gateway answers")


def a_full_disk(day: Day) -> None:
    day.night()
    day.wait((day.home / "runs" / "chain-0002" / "progress.jsonl").exists)
    with full(day.disk):
        day.say("the disk is full")
        day.stay(30)
    day.say("the disk has room again")


def steps_of_the_clock(day: Day) -> None:
    day.wait(lambda: day.step(2) > 0 or day.decided() > 1)
    day.clock(5400)
    day.faults(1.0)
    day.say("the clock steps forward by 90 minutes, the object store is away")
    day.stay(15)
    day.faults(0.0)
    day.clock(-1800)
    day.say("the object store is back, the clock steps back by 30 minutes")


def the_second_night_ends(day: Day) -> None:
    day.until_decided(2)
    day.measure()
    day.wait(lambda: len(told(day)) >= len(day.settings.ledger.history()), 300)


STEPS = (
    the_first_night_begins, errors_of_the_store, postgres_away_in_a_night, kills,
    the_first_night_ends, a_dead_gateway, a_dead_daemon, a_full_disk, steps_of_the_clock,
    the_second_night_ends,
)  # fmt: skip


def test_a_day_with_two_nights_loses_nothing() -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    day = Day(PLACE)
    try:
        for step in STEPS[day.state["done"] :]:
            step(day)
            day.state["done"] += 1
            day.save()
        faults = page(day)
    except Exception:
        day.end()
        raise
    day.end()
    assert not faults + orphans(day.home, 10)


def told(day: Day) -> Counter[str]:
    """Return how often each message about a decision was sent."""
    return Counter(title for title in titles(day) if re.search("champion$|refused$", title))


def titles(day: Day) -> list[str]:
    return list(json.loads((day.folder / "messages.json").read_text()))


def page(day: Day) -> list[str]:
    """Print the page of the day. Return its faults."""
    home, history, sizes = day.settings.home, day.settings.ledger.history(), day.state["sizes"]
    nights = [record for record in day.runs() if record.decision]
    kept = {str(entry.entry): entry.run_id for entry in history}
    lost = {*day.state["seen"].items()} - {*kept.items()}
    lost |= {night.id for night in nights} - {*kept.values()}
    drawn = sorted((draw.seed, draw.first, draw.end) for each in day.runs() for draw in each.draws)
    shared = [a for a, b in pairwise(drawn) if a[0] == b[0] and a[2] > b[1]]
    answers = {each["id"] for each in day.answers() if each["status"] == 200}
    recorded = [row.response for _, row in Observations(home.observations, home.database).read()]
    messages = told(day)
    rows: list[tuple[str, Any, bool]] = [  # name, value, whether it may not be
        ("nights decided", [f"{each.id}: {each.decision}" for each in nights], len(nights) < 2),
        ("decisions lost", len(lost), bool(lost)),
        ("decisions done twice", len(twice(kept.values())), bool(twice(kept.values()))),
        ("draws of held-out tasks that overlap", len(shared), bool(shared)),
        ("decisions told", f"{len(messages)} of {len(kept)}", len(messages) < len(kept)),
        ("told twice", twice(messages.elements()), bool(twice(messages.elements()))),
        ("other messages", dict(Counter(titles(day)) - messages), False),
        ("requests by status", dict(Counter(each["status"] for each in day.answers())), False),
        ("answers recorded twice", len(twice(recorded)), bool(twice(recorded))),
        ("answers not recorded", len(answers - {*recorded}), False),
        ("starts of the services", day.state["starts"], False),
    ]
    for name in sizes[0]:
        first, last = sizes[0][name], sizes[-1][name]
        grown = last > GROWTH * first + SLACK_MIB
        rows.append((f"{name} after each night", f"{first}, {last} MiB", grown))
    table = [f"| {name} | {value}{' **FAULT**' * fault} |" for name, value, fault in rows]
    text = ["# A compressed day", "", "| figure | value |", "|---|---|", *table, "", "```"]
    text += [*day.state["events"], "```", ""]
    (day.folder / "page.md").write_text("\n".join(text))
    print("\n".join(text))
    return [row for row, (*_, fault) in zip(table, rows, strict=True) if fault]


def twice(values: Iterable[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]
