"""A challenger that fails every request: how soon do its circuit breaker and its rollout react?

`python -m measurements.circuit_breaker FOLDER [rollouts]`: 20 rollouts at 50 % by default, four
clients, one gateway with tiny models. Seconds count from the record of the rollout, so that the
gateway's next look at it is included. FOLDER keeps the home. Prints a table.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import numpy as np

from measurements.rollouts_under_load import BAD, Engine, gateway_under_load
from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.rollouts import Rollouts
from serving.completion import Delta, EngineFailed, EngineRequest
from serving.rollout.opening import open_rollout

CLIENTS, FAILING = 4, 3
broken = threading.Event()


class Failing(Engine):
    """Version 3 answers nothing while it is broken."""

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        if self.failing and broken.is_set():
            raise EngineFailed("each one")
        self.number = 0  # the others never fail
        async for delta in super().stream(request):
            yield delta


def breaker(url: str) -> str:
    """Return the state of the failing version's breaker."""
    with urllib.request.urlopen(f"{url}/models") as reply:
        return str(json.load(reply)["versions"][FAILING - 1].get("breaker", "closed"))


def repair(url: str) -> None:
    """Let the version answer until its breaker is closed."""
    broken.clear()
    body = json.dumps({"model": "failing", "prompt": "a", "max_tokens": 1}).encode()
    request = urllib.request.Request(
        f"{url}/v1/completions", body, {"Content-Type": "application/json"}
    )
    while breaker(url) != "closed":
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(request):
            pass
        time.sleep(0.2)


def one_rollout(url: str, ledger: Ledger, rollouts: Rollouts) -> tuple[float, float]:
    """Return seconds until the breaker opens, and until the rollout is taken back."""
    broken.set()
    rollout = open_rollout(ledger, rollouts, BAD, FAILING, why="a measurement")
    began = rollout.events[0].time
    while breaker(url) == "closed":
        time.sleep(0.005)
    opened = time.time()
    while (last := rollouts.all()[-1]).open:
        time.sleep(0.02)
    assert last.state == "rolled_back", last.state
    return opened - began, last.last.time - began


def main() -> None:
    home = Home(Path(sys.argv[1]).absolute())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    rows = []
    with gateway_under_load(home, Failing, CLIENTS) as (url, ledger, rollouts, outcomes):
        for _ in range(count):
            rows.append(one_rollout(url, ledger, rollouts))
            repair(url)
    failed = outcomes["failed answer"] + outcomes["failed stream"]
    print(f"load {os.getloadavg()[0]:.1f}, {sum(outcomes.values())} requests, {failed} failed\n")
    print("| | median | least | most |\n|---|---|---|---|")
    for name, seconds in zip(("breaker opens", "rolled back"), np.array(rows).T, strict=True):
        numbers = (np.median(seconds), seconds.min(), seconds.max())
        print(f"| {name} | {' | '.join(f'{number:.1f} s' for number in numbers)} |")


if __name__ == "__main__":
    main()
