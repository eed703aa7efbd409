"""Releases of the shipped default plan by simulation: wrong promotions and rollbacks, coverage.

`python -m measurements.releases FILE [releases]`: 1,000 releases for each kind of traffic and
challenger, with and without a hostile key; 2,000 confidence sequences. Each finished row is
appended to FILE, and rows in it are not computed again. Some minutes on one core.

Steps, margins, levels, bets and the limit of a key are the product's; requests, gateway and
databases are left out. Each request is of another user and has tests. The champion fails the tests
of 30 % and fails in 2 %; the challenger differs in failed tests alone. The other guardrails, which
an equal challenger clears sooner, are left out. A release is looked at after every pair, in the
step that decides after every tenth.

The hostile key has its largest share of the counted requests, and its tests fail for one version
and pass for the other: of an equal challenger to have it rolled back, of a worse one to have it
promoted. Evidence is taken with and without this key, never without another one: the product, which
asks for the agreement of all, decides less often.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from math import log
from pathlib import Path

import numpy as np

from evaluation.statistics.hypothesis_tests import wilson
from evaluation.statistics.online.confidence_sequence import BETS, log_capital
from evaluation.statistics.online.shared_evidence import capital_logs
from resources.config.release import ReleaseSettings
from serving.experiment.feedback import ALWAYS
from serving.experiment.guardrail import Guardrail
from serving.gateway.observations import DAY_S
from serving.release.plan import ERRORS, QUALITY, plan_of

PLAN = plan_of(ReleaseSettings(), "gradual", 1)
GUARDRAILS = {each.name: each for each in PLAN.guardrails if each.name in (ERRORS, QUALITY)}
BASE = {ERRORS: 0.02, QUALITY: 0.3}
RATES = {"3 an hour": 3 / 3600, "1 a second": 1.0, "10 a second": 10.0}
WORSE = (0.0, 0.02, 0.05, 0.1, 0.2)
LOOK = 10  # pairs between two looks in the step that decides
AT_ONCE = 500  # pairs that are drawn together
Floats = np.ndarray


class Releases:
    """So many releases at once. drop: how much more often the challenger fails tests. attack: None,
    or the version whose tests the hostile key lets fail, 1 for the champion, 2 for the challenger.
    """

    def __init__(self, rate: float, drop: float, attack: int | None, count: int) -> None:
        self.rng = np.random.default_rng(2026)
        self.rate, self.drop, self.attack, self.count = rate, drop, attack, count
        self.end = np.full(count, "", dtype=object)
        self.requests = np.zeros(count)
        # Guardrail -> logarithm of the capital, shape (releases, with or without the hostile key,
        # worse or not worse, bets).
        self.capital = {name: np.zeros((count, 2, 2, len(BETS))) for name in GUARDRAILS}

    def run(self) -> None:
        """Carry every release to its end."""
        left = int(PLAN.max_days * DAY_S * self.rate)
        for number, step in enumerate(PLAN.steps):
            least, seconds = min(step.share, 1 - step.share), PLAN.bake_s
            pairs = PLAN.min_pairs
            if step.watch:
                seconds, pairs, left = PLAN.watch_s, 0, 10**9
            pairs = max(pairs, int(seconds * self.rate * least))
            decides = PLAN.decides(number)
            most = min(PLAN.max_pairs if decides else pairs, int(left * least))
            waiting: Floats = np.equal(self.end, "")
            for begin in range(0, most, AT_ONCE):
                if not waiting.any():
                    break
                size = min(AT_ONCE, most - begin)
                self.pairs(waiting, size, step.share, LOOK if decides else 1, number + begin == 0)
                looks = self.looks
                breach = np.asarray(self.shown(0, PLAN.level).any(0))
                cleared = np.asarray(self.shown(1, PLAN.alpha).all(0))
                clear = cleared & decides & (begin + looks >= pairs)
                over = breach | clear
                at = np.where(over.any(1), over.argmax(1), len(looks) - 1)
                each = np.arange(len(at))
                self.requests[waiting] += looks[at] / least
                rows = np.flatnonzero(waiting)
                self.end[rows[breach[each, at]]] = "rolled back"
                waiting[rows[over.any(1)]] = False
            left -= int(pairs / least)
            self.end[waiting & (decides | (most < pairs))] = "undecided"
        self.end[np.equal(self.end, "")] = "promoted"

    def shown(self, side: int, level: float) -> Floats:
        """Return whether each guardrail has the evidence, with and without the hostile key; shape
        (guardrails, releases, looks).
        """
        every = []
        for path in self.paths.values():
            capital = np.logaddexp.reduce(path[:, :, :, side], axis=-1) - log(len(BETS))
            every.append((capital >= -log(level)).all(2))
        return np.stack(every)

    def pairs(self, rows: Floats, size: int, share: float, every: int, first: bool) -> None:
        """Draw the next pairs of some releases. every: pairs between two looks. first: of all."""
        rng, releases = self.rng, int(rows.sum())
        ratio = round(1 / min(share, 1 - share)) - 1
        hostile = 0.0 if self.attack is None else PLAN.key_share
        one = rng.random((releases, size)) < hostile
        one[:, : ALWAYS if first and hostile else 0] = True
        many = rng.binomial(ratio, hostile, (releases, size))
        starts = np.arange(0, size, every)
        self.looks = np.append(starts[1:], size)
        self.paths = {}
        for name, guardrail in GUARDRAILS.items():
            challenger = BASE[name] + self.drop * (name == QUALITY)
            rare, others = (challenger, BASE[name]) if share <= 0.5 else (BASE[name], challenger)
            honest_one = (rng.random((releases, size)) < rare).astype(float)
            honest = rng.binomial(ratio - many, others)
            fails = [0.0, 0.0]  # of the hostile key's requests: the rarer version, the other one
            if name == QUALITY and self.attack is not None:
                fails[int((self.attack == 2) != (share <= 0.5))] = 1.0
            else:  # nobody makes the gateway's own failures
                fails = [rare, others]
            whole = np.where(one, fails[0], honest_one) - (honest + many * fails[1]) / ratio
            alone = honest_one - honest / np.maximum(ratio - many, 1)
            gone = one | (many == ratio)
            sign = 1 if share <= 0.5 else -1
            both = ((sign * whole, np.zeros_like(gone)), (sign * alone, gone))
            steps = np.stack(
                [_logs(guardrail, *each, starts, ratio == 1) for each in both], axis=2
            ).cumsum(1)
            self.paths[name] = self.capital[name][rows][:, None] + steps
            self.capital[name][rows] = self.paths[name][:, -1]


def _logs(
    guardrail: Guardrail, differences: Floats, gone: Floats, starts: Floats, single: bool
) -> Floats:
    """Return the logarithms of the bets' factors over each group of pairs; shape (releases, groups,
    2, bets).

    gone: pairs that are left out. starts: first pair of each group. single: a pair has one request
    of each version.
    """
    high = guardrail.high
    three, mean = np.array([-1.0, 0.0, 1.0]), (guardrail.margin + high) / (2 * high)
    if single:
        factors = capital_logs((three + high) / (2 * high), mean)
        counts = [
            np.add.reduceat((differences == value) & ~gone, starts, axis=1, dtype=np.int64)
            for value in three
        ]
        found: Floats = np.einsum("vrg,vsb->rgsb", np.stack(counts).astype(float), factors)
        return found
    values, places = np.unique(differences, return_inverse=True)
    factors = capital_logs((values + high) / (2 * high), mean)
    logs = factors[places.reshape(differences.shape)] * ~gone[..., None, None]
    return np.add.reduceat(logs, starts, axis=1)


def ends(rate: str, drop: float, attack: int | None, releases: int) -> list[str]:
    """Return a row: how many of the releases were promoted, rolled back, left undecided, and the
    requests and days of one.
    """
    simulated = Releases(RATES[rate], drop, attack, releases)
    simulated.run()
    shown = []
    for end in ("promoted", "rolled back", "undecided"):
        count = int((simulated.end == end).sum())
        low, high = wilson(count, releases)
        shown.append(f"{100 * count / releases:.1f} % ({100 * low:.1f} to {100 * high:.1f})")
    requests = float(np.median(simulated.requests))
    return [*shown, f"{requests:,.0f}", f"{requests / RATES[rate] / DAY_S:.2g}"]


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
    file, releases = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    lines = file.read_text().splitlines() if file.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    rows: list[tuple[tuple[str, ...], Callable[[], list[str]]]] = []
    hostile = [(0.0, 2), (0.05, 1), (0.1, 1)]
    for drop, attack in [*((drop, None) for drop in WORSE), *hostile]:
        for rate in RATES:
            who = {None: "nobody", 1: "against the champion", 2: "against the challenger"}[attack]
            key: tuple[str, ...] = (f"{100 * drop:g} points", who, rate)
            rows.append((key, partial(ends, rate, drop, attack, releases)))
    for mean in (0.01, 0.1, 0.5):
        rows.append((("coverage", f"{mean}"), partial(coverage, mean, 2 * releases)))
    for key, compute in rows:
        if key not in done:
            with file.open("a") as out:
                out.write(json.dumps({"key": key, "row": compute()}) + "\n")
    for line in file.read_text().splitlines():
        row = json.loads(line)
        print(f"| {' | '.join([*row['key'], *row['row']])} |")


if __name__ == "__main__":
    main()
