"""A home with versions, and simulated users whose requests are recorded as a gateway does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from resources.config.release import ReleaseSettings, Strategy
from resources.registry.ledger import Ledger
from resources.registry.releases import Release, Releases
from serving.gateway.observations import Observation, Observations
from serving.gateway.routing import Choice
from serving.release.controller import Controller
from serving.release.opening import propose
from serving.release.plan import plan_of
from serving.release.router import ReleaseRouter
from tests.resources.ledger_entries import put

# Wide margins, which few requests clear.
WIDE = ReleaseSettings(
    errors_margin=0.3, refusals_margin=0.3, slow_margin=0.3, quality_margin=0.3,
    tokens_margin=60.0, tokens_limit=200.0,
)  # fmt: skip
SETTINGS = WIDE.model_copy(update={"bake_s": 0, "watch_s": 0, "min_pairs": 5, "shares": (0.1, 0.5)})


def open_release(
    ledger: Ledger,
    releases: Releases,
    settings: ReleaseSettings,
    *versions: int,
    strategy: Strategy | None = None,
) -> Release:
    return propose(ledger, releases, settings, *versions, strategy=strategy).open(
        releases, "a test"
    )


ANSWER = Observation(
    response="r", time=0.0, version=1, arm="", share=0.5, release="r", step=0, unit="u", key="",
    first_token_s=0.1, total_s=0.2, prompt_tokens=1, completion_tokens=1,
)  # fmt: skip


class Site:
    """One home: versions 1 to `versions` in the ledger, releases, observations and a router."""

    def __init__(self, path: Path, versions: int = 2) -> None:
        self.ledger = Ledger(path / "promotions.db")
        if not self.ledger.history():
            put(self.ledger, "a", "install")
            for name in "bcdef"[: versions - 1]:
                put(self.ledger, name)
        self.releases = Releases(path / "promotions.db", lambda: "the same users each time")
        self.observations = Observations(path / "observations.db")
        self.router = ReleaseRouter(self.releases, self.ledger, self.champion)
        self.controller = Controller(self.releases, self.ledger, self.observations)
        self.rng = np.random.default_rng(1)
        self.sent = 0
        self.passes: Sequence[float] | None = None
        self.key: Callable[[int], str] = lambda number: ""
        self.lies: dict[str, Sequence[float]] = {}  # key -> its own `passes`

    def champion(self) -> int:
        entry = self.ledger.champion()
        assert entry
        return entry.version

    def open(self, strategy: Strategy = "gradual", settings: ReleaseSettings = SETTINGS) -> Release:
        plan = plan_of(settings, strategy, 1).model_dump(mode="json")
        release = self.releases.open(1, 2, plan, why="a test")
        self.router.refresh()
        return release

    def experiment(self, settings: ReleaseSettings = SETTINGS) -> Release:
        """Open an experiment with all versions against the first."""
        _, first, *others = (entry.version for entry in self.ledger.history())
        plan = plan_of(settings, "experiment", 1, 1 + len(others)).model_dump(mode="json")
        release = self.releases.open(1, first, plan, why="a test", others=others)
        self.router.refresh()
        return release

    def send(
        self,
        requests: int,
        errors: Sequence[float] = (0.0,) * 5,
        passes: Sequence[float] | None = None,
    ) -> list[Choice]:
        """Record requests of different users. errors: rate of each version; passes: how often its
        answers pass their tests, None where no request carries tests.
        """
        self.passes = passes
        choices, rows = [], []
        for _ in range(requests):
            self.sent += 1
            choices.append(choice := self.router.choose(f"user-{self.sent}"))
            rows.append(self._row(choice, choice.version, errors))
            rows += [self._row(choice, v, errors, shadow=True) for v in choice.shadows]
        self.observations.append(rows)
        return choices

    def tick(self) -> str:
        """Let the controller look once; returns the kind of its event, "" for none."""
        event = self.controller.tick()
        self.router.refresh()
        return event.kind if event else ""

    def last(self) -> Release:
        return self.releases.all()[-1]

    def _row(
        self, choice: Choice, version: int, errors: Sequence[float], shadow: bool = False
    ) -> Observation:
        failed = self.rng.random() < errors[version - 1]
        verified = None
        if self.passes is not None:
            passes = self.lies.get(self.key(self.sent), self.passes)
            verified = bool(self.rng.random() < passes[version - 1])
        return replace(
            ANSWER,
            response=f"response-{self.sent}",
            time=time.time(),
            version=version,
            arm=choice.arm,
            share=choice.share,
            release=choice.release,
            step=choice.step,
            unit=f"user-{self.sent}",
            key=self.key(self.sent),
            total_s=float(self.rng.gamma(4, 0.1)),
            prompt_tokens=10,
            completion_tokens=int(self.rng.integers(10, 60)),
            error="engine" if failed else "",
            verified=verified,
            shadow=shadow,
        )
