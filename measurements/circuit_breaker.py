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
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import numpy as np

from measurements.rollouts_under_load import Engine, load, prepare
from resources.config.rollout import RolloutSettings
from resources.config.serving import Serving
from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.rollouts import Rollouts
from serving.completion import Delta, EngineFailed, EngineRequest
from serving.gateway.app import make_app
from serving.gateway.server import listen, server_of
from serving.rollout.attach import attached_router
from serving.rollout.opening import open_rollout

CLIENTS, FAILING = 4, 3
STEP = RolloutSettings(bake_s=600, shares=(0.5,))  # nothing but a breach ends it


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
    rollout = open_rollout(ledger, rollouts, STEP, FAILING, why="a measurement")
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
    prepare(home)
    ledger, rollouts = Ledger(home.ledger, home.path), Rollouts(home.ledger)
    settings = Serving(memory_gib=8.0)
    app = make_app(
        home,
        settings,
        ledger=ledger,
        router_of=lambda catalog: attached_router(home, ledger, catalog),
        open_engine=lambda entry, _: Failing(entry),
    )
    server = server_of(app, settings)
    outcomes: Counter[str] = Counter()
    stop = threading.Event()
    if not rollouts.all():
        open_rollout(ledger, rollouts, STEP, 2, strategy="immediate", why="the start")
    rows = []
    with listen(settings, 0, has_keys=True) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        serving.start()
        while not server.started or rollouts.all()[-1].open:
            time.sleep(0.1)
        clients = threading.Thread(target=load, args=(url, stop, outcomes, CLIENTS), daemon=True)
        clients.start()
        for _ in range(count):
            rows.append(one_rollout(url, ledger, rollouts))
            repair(url)
        stop.set()
        clients.join()
        server.should_exit = True
        serving.join()
    failed = outcomes["failed answer"] + outcomes["failed stream"]
    print(f"load {os.getloadavg()[0]:.1f}, {sum(outcomes.values())} requests, {failed} failed\n")
    print("| | median | least | most |\n|---|---|---|---|")
    for name, seconds in zip(("breaker opens", "rolled back"), np.array(rows).T, strict=True):
        numbers = (np.median(seconds), seconds.min(), seconds.max())
        print(f"| {name} | {' | '.join(f'{number:.1f} s' for number in numbers)} |")


if __name__ == "__main__":
    main()
