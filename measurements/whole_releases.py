"""Releases of the shipped default plan with the product's record, controller and comparison.

`python -m measurements.whole_releases FILE [releases]`: so many releases (10) for each kind of
traffic, challenger and hostile key. Each finished row is appended to FILE, and rows in it are not
computed again. A release takes up to 20 s of one core, so `releases.py` has the thousands, of the
two guardrails that decide. Here are all six, the record, the database of observations, and every
key left out in turn. Only the clocks and the requests are simulated.

The requests are of 40 honest keys, each of another user. The champion fails in 2 %, declines 1 %
and fails the tests of 30 %; the challenger differs in failed tests alone. A hostile key sends every
second request; its tests fail for one version and pass for the other. The controller looks after
every 50 requests.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime, tzinfo
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

from measurements.releases import BASE, WORSE
from resources.config.release import ReleaseSettings
from resources.registry import releases as record
from resources.registry.ledger import Ledger
from resources.registry.releases import Release, Releases
from serving.gateway.observations import DAY_S, ErrorKind, Observation, Observations
from serving.release.controller import Controller
from serving.release.plan import ERRORS, QUALITY, ReleasePlan, plan_of
from serving.release.step_clock import StepClock

ENDS = ("promoted", "rolled_back", "undecided")
KEYS, LOOK, DECLINED = 40, 100, 0.01
RATES = {"3 an hour": 3 / 3600, "1 a second": 1.0}
ATTACKS = ((0.0, 2), (0.05, 1), (0.1, 1))  # points worse, version whose tests the key lets fail
WHO = {0: "nobody", 1: "against the champion", 2: "against the challenger"}


class Simulated(datetime):
    """The time of the record."""

    seconds = 0.0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Simulated:
        return cls.fromtimestamp(cls.seconds, tz)


class Users:
    """Draws requests of users who come once. drop: how much more often the challenger fails tests.
    attack: version whose tests the hostile key lets fail, 0 without such a key.
    """

    def __init__(self, plan: ReleasePlan, drop: float, attack: int, seed: int) -> None:
        self.plan, self.attack = plan, attack
        self.fails = (BASE[QUALITY], BASE[QUALITY] + drop)
        self.rng, self.sent = np.random.default_rng(seed), 0

    def rows(self, release: Release) -> list[Observation]:
        share = self.plan.steps[release.step].share
        return [self._row(release, share) for _ in range(LOOK)]

    def _row(self, release: Release, share: float) -> Observation:
        self.sent += 1
        draw = self.rng.random
        version = 1 + int(draw() < share)
        hostile = bool(self.attack) and draw() < 0.5
        fails = float(version == self.attack) if hostile else self.fails[version - 1]
        error: ErrorKind = "engine" if draw() < BASE[ERRORS] else ""
        return Observation(
            response=f"r{self.sent}", time=Simulated.seconds, version=version, arm="", share=share,
            release=release.id, step=release.step, unit=f"u{self.sent}",
            key="hostile" if hostile else f"key-{self.rng.integers(KEYS)}",
            first_token_s=float(self.rng.gamma(4, 0.02)), total_s=float(self.rng.gamma(4, 0.2)),
            prompt_tokens=50, completion_tokens=int(self.rng.gamma(4, 50)),
            error=error or ("declined" if draw() < DECLINED else ""),
            verified=bool(draw() >= fails),
        )  # fmt: skip


def one(drop: float, attack: int, rate: float, seed: int) -> tuple[str, int]:
    """Carry one release to its end; return its state and the requests that it took."""
    plan = plan_of(ReleaseSettings(), "gradual", 1)
    users = Users(plan, drop, attack, seed)
    Simulated.seconds = 1_800_000_000.0
    with tempfile.TemporaryDirectory() as folder, patch.object(record, "datetime", Simulated):
        ledger = Ledger(Path(folder) / "promotions.db")
        for name in "ab":
            ledger.append(
                "promote" if name == "b" else "install", checkpoint=name, checkpoint_hash=name * 64,
                path=name, decision={}, run_id=name, against="a" * 64 if name == "b" else None,
            )  # fmt: skip
        releases = Releases(Path(folder) / "promotions.db")
        observations = Observations(Path(folder) / "observations.db")
        controller = Controller(releases, ledger, observations, lambda: Simulated.seconds)
        controller.step_clock = StepClock(lambda: Simulated.seconds)
        release = releases.open(1, 2, plan.model_dump(mode="json"), why="a measurement")
        while release.open:
            observations.append(users.rows(release))
            Simulated.seconds += LOOK / rate
            if controller.tick():
                release = releases.all()[-1]
        return release.state, users.sent


def main() -> None:
    file, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    done = {
        tuple(json.loads(line)["key"])
        for line in (file.read_text().splitlines() if file.exists() else [])
    }
    for drop, attack in [*ATTACKS, *((drop, 0) for drop in WORSE)]:
        for name, rate in RATES.items():
            key = (f"{100 * drop:g} points", WHO[attack], name)
            if key in done:
                continue
            began = time.process_time()
            ends = [one(drop, attack, rate, seed) for seed in range(count)]
            states = Counter(state for state, _ in ends)
            requests = median(sent for _, sent in ends)
            row = [
                *(
                    f"{states[state]} of {count}"
                    for state in ("promoted", "rolled_back", "undecided")
                ),
                f"{requests:,.0f}",
                f"{requests / rate / DAY_S:.2g}",
                f"{(time.process_time() - began) / count:.1f} s",
            ]
            with file.open("a") as out:
                out.write(json.dumps({"key": key, "row": row}) + "\n")
            print("|", " | ".join([*key, *row]), "|", flush=True)


if __name__ == "__main__":
    main()
