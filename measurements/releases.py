"""Releases of the shipped default plan by simulation: wrong promotions and rollbacks, coverage.

`python -m measurements.releases FILE [releases]`: 1,000 releases for each kind of traffic,
challenger and hostile key; 2,000 confidence sequences. Each finished row is appended to FILE, and
rows in it are not computed again. Up to 0.3 s of one core a release; it needs a C compiler, `cc`.
`python -m measurements.releases check FILE [releases]`: the same releases (2) with the product's
record, controller, database and comparison; each must end alike, after as many requests.

The requests are of 40 honest keys, each of another user and with tests. The champion fails in 2 %,
declines 1 % and fails the tests of 30 %; the challenger differs in failed tests alone. A hostile
key sends every second request; its tests fail for one version and pass for the other. The
controller looks every half second, or after every request if they are rarer. All six guardrails
are watched, and every key is left out in turn.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import datetime, tzinfo
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from evaluation.statistics.hypothesis_tests import wilson
from evaluation.statistics.online.confidence_sequence import BETS, log_capital
from resources.config.release import ReleaseSettings
from resources.registry import releases as record
from resources.registry.ledger import Ledger
from resources.registry.releases import Releases
from serving.gateway.observations import DAY_S, ErrorKind, Observation, Observations
from serving.release.controller import Controller
from serving.release.plan import plan_of
from serving.release.step_clock import StepClock

PLAN = plan_of(ReleaseSettings(), "gradual", 1)
FAILED, DECLINED, WRONG = 0.02, 0.01, 0.3  # shares of the champion's requests
KEYS = 40  # honest ones; the hostile one comes after them
RATES = {"3 an hour": 3 / 3600, "1 a second": 1.0, "10 a second": 10.0}
WORSE = (0.0, 0.02, 0.05, 0.1, 0.2)
WHO = ("nobody", "against the champion", "against the challenger")
ENDS = ("promoted", "rolled_back", "undecided")
KINDS: tuple[ErrorKind, ...] = ("", "engine", "declined")


class Plan(ctypes.Structure):
    """`Plan` of releases.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("steps", "min_pairs", "max_pairs", "look")),
        ("share", 8 * ctypes.c_double),
        *(
            (name, ctypes.c_double)
            for name in ("bake_s", "watch_s", "max_days", "key_share", "level", "alpha")
        ),
        ("slow_ratio", ctypes.c_double),
        ("bets", len(BETS) * ctypes.c_double),
        ("margin", len(PLAN.guardrails) * ctypes.c_double),
        ("high", len(PLAN.guardrails) * ctypes.c_double),
    )


class Traffic(ctypes.Structure):
    """`Traffic` of releases.c."""

    _fields_ = (
        ("seed", ctypes.c_long),
        ("attack", ctypes.c_int),
        *((name, ctypes.c_double) for name in ("rate", "failed", "declined")),
        ("fails", 2 * ctypes.c_double),
    )


class Request(ctypes.Structure):
    """`Request` of releases.c."""

    _fields_ = (
        *((name, ctypes.c_double) for name in ("arm", "fails", "first_token_s", "total_s")),
        *((name, ctypes.c_int) for name in ("tokens", "key", "error")),
    )


def look_of(rate: float) -> int:
    """Return the requests between two looks of the controller."""
    return max(1, round(rate / 2))


def plan(rate: float) -> Plan:
    """Return the shipped default plan for releases.c."""
    shares = [step.share for step in PLAN.steps]
    ratios = {each.ratio for each in PLAN.guardrails} - {None}
    return Plan(
        len(shares), PLAN.min_pairs, PLAN.max_pairs, look_of(rate),
        (ctypes.c_double * 8)(*shares), PLAN.bake_s, PLAN.watch_s, PLAN.max_days, PLAN.key_share,
        PLAN.level, PLAN.alpha, ratios.pop(), tuple(BETS),
        tuple(each.margin for each in PLAN.guardrails),
        tuple(each.high for each in PLAN.guardrails),
    )  # fmt: skip


def traffic(drop: float, attack: int, rate: float, seed: int) -> Traffic:
    return Traffic(seed, attack, rate, FAILED, DECLINED, (WRONG, WRONG + drop))


@cache
def library() -> ctypes.CDLL:
    """Compile releases.c."""
    source = Path(__file__).with_suffix(".c")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "releases.so"
        subprocess.run(
            ["cc", "-Ofast", "-march=native", "-shared", "-fPIC", source, "-o", target, "-lm"],
            check=True,
        )
        return ctypes.CDLL(str(target))


def simulated(drop: float, attack: int, rate: float, seed: int) -> tuple[str, int]:
    """Return how a release ends, and the requests until then."""
    own, requests, sent = plan(rate), traffic(drop, attack, rate, seed), ctypes.c_int()
    end = library().release_of(ctypes.byref(own), ctypes.byref(requests), ctypes.byref(sent))
    return ENDS[end], sent.value


class Simulated(datetime):
    """The time of the record."""

    seconds = 0.0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Simulated:
        return cls.fromtimestamp(cls.seconds, tz)


def whole(drop: float, attack: int, rate: float, seed: int) -> tuple[str, int]:
    """Carry the same release to its end with the product."""
    requests, request = traffic(drop, attack, rate, seed), Request()
    sent, look, began = 0, look_of(rate), 1_800_000_000.0
    Simulated.seconds = began
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
        release = releases.open(1, 2, PLAN.model_dump(mode="json"), why="a measurement")
        while release.open:
            share = PLAN.steps[release.step].share
            rows = []
            for i in range(sent, sent + look):
                library().draw(ctypes.byref(requests), ctypes.c_long(i), ctypes.byref(request))
                arm, hostile = int(request.arm < share), request.key == KEYS
                fails = float(arm + 1 == attack) if hostile else WRONG + arm * drop
                row = Observation(
                    response=f"r{i}", time=Simulated.seconds, version=1 + arm, arm="",
                    share=share, release=release.id, step=release.step, unit=f"u{i}",
                    key=f"key-{request.key}", first_token_s=request.first_token_s,
                    total_s=request.total_s, prompt_tokens=50, completion_tokens=request.tokens,
                    error=KINDS[request.error], verified=request.fails >= fails,
                )  # fmt: skip
                rows.append(row)
            observations.append(rows)
            sent += look
            Simulated.seconds = began + sent / rate
            if controller.tick():
                release = releases.all()[-1]
        return release.state, sent


def ends(rate: str, drop: float, attack: int, count: int) -> list[str]:
    """Return a row: how many of the releases were promoted, rolled back, left undecided, and the
    requests and days of one.
    """
    found = [simulated(drop, attack, RATES[rate], seed) for seed in range(count)]
    states = Counter(end for end, _ in found)
    shown = []
    for end in ENDS:
        low, high = wilson(states[end], count)
        shown.append(f"{100 * states[end] / count:.1f} % ({100 * low:.1f} to {100 * high:.1f})")
    requests = float(np.median([sent for _, sent in found]))
    return [*shown, f"{requests:,.0f}", f"{requests / RATES[rate] / DAY_S:.2g}"]


def agreement(rate: str, drop: float, attack: int, count: int) -> list[str]:
    """Return a row: how many of the releases end as they do with the product."""
    cell = (drop, attack, RATES[rate])
    pairs = [(simulated(*cell, seed), whole(*cell, seed)) for seed in range(count)]
    own = ", ".join(f"{end} after {sent:,}" for _, (end, sent) in pairs)
    return [f"{sum(one == other for one, other in pairs)} of {count}", own]


def coverage(mean: float, sequences: int) -> list[str]:
    """Return a row: how many sequences leave out the mean at any of 5,000 moments, each side."""
    rng, above, below = np.random.default_rng(3), 0, 0
    for _ in range(sequences // 100):
        values = (rng.random((100, 5000)) < mean).astype(float)
        above += (log_capital(values, mean).max(1) >= np.log(40)).sum()
        below += (log_capital(1 - values, 1 - mean).max(1) >= np.log(40)).sum()
    wrong = int(above + below)
    low, high = wilson(sequences - wrong, sequences)
    covered = f"{100 * (1 - wrong / sequences):.2f} % ({100 * low:.2f} to {100 * high:.2f})"
    return [f"{sequences}", f"{above}", f"{below}", covered]


def main() -> None:
    arguments = sys.argv[1:]
    checked = arguments[0] == "check"
    file, *rest = arguments[checked:]
    releases = int(rest[0]) if rest else 2 if checked else 1000
    path = Path(file)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    row = agreement if checked else ends
    rows: dict[tuple[str, ...], Callable[[], list[str]]] = {
        (f"{100 * drop:g} points", WHO[attack], rate): partial(row, rate, drop, attack, releases)
        for attack in range(3)
        for drop in WORSE
        for rate in RATES
    }
    if not checked:
        for mean in (0.01, 0.1, 0.5):
            rows["coverage", f"{mean}"] = partial(coverage, mean, 2 * releases)
    for key, compute in rows.items():
        if key not in done:
            found = compute()
            with path.open("a") as out:
                out.write(json.dumps({"key": key, "row": found}) + "\n")
            print("|", " | ".join([*key, *found]), "|", flush=True)


if __name__ == "__main__":
    main()
