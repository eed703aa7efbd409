"""Rollouts and rollbacks one after another under load, with real tiny models: is a request lost?

`python -m measurements.rollouts_under_load FOLDER [pairs]`: 100 rollouts that promote and 100 that
are rolled back, alternating, while eight clients send requests to one gateway, half of them as
streams. The challenger of a rollback fails in a third of its requests. FOLDER keeps the home;
called again, it continues. Prints a table.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from artifacts.hashing import hash_folder
from resources.config.rollout import RolloutSettings
from resources.config.serving import Serving
from resources.home import Home
from resources.registry.ledger import Entry, Ledger
from resources.registry.rollouts import Rollouts, deployed
from serving.engines import Delta, EngineFailed, EngineRequest
from serving.engines.transformers import TransformersEngine
from serving.gateway.app import make_app
from serving.gateway.server import listen, server_of
from serving.rollout.attach import attached_router
from serving.rollout.opening import open_rollout
from serving.rollout.page import rollout_routes
from verl_jobs.sft.tiny_model import TinyModel, make

CLIENTS, TOKENS = 8, 8
NAMES = ("one", "two", "failing")  # versions 1, 2 and 3
GOOD = RolloutSettings(bake_s=0.3, least_pairs=5, shares=(0.2, 0.5))
BAD = RolloutSettings(bake_s=600, shares=(0.5,))  # nothing but a breach ends it
TEXTS = ["double the number x and add 2", "sort the list of integers", "return the first word"]


class Engine(TransformersEngine):
    """Fails every third request of the version `failing`, except in its warm-up."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(Path(entry.path))
        self.failing, self.number = entry.checkpoint == "failing", 0

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        self.number += 1
        if self.failing and self.number % 3 == 0:
            raise EngineFailed("one in three")
        async for delta in super().stream(request):
            yield delta


def prepare(home: Home) -> None:
    """Make three tiny models and put them into the ledger, once."""
    ledger = Ledger(home.ledger, home.path)
    for number, name in list(enumerate(NAMES))[len(ledger.history()) :]:
        folder = home.path / name
        make(TinyModel(), [f"{text} {number}" for text in TEXTS * 20], folder)
        champion = ledger.champion()
        ledger.append(
            "promote" if champion else "install",
            checkpoint=name,
            checkpoint_hash=hash_folder(folder),
            path=str(folder),
            decision={"reasons": [name]},
            chain=f"chain-{name}",
            against=champion.checkpoint_hash if champion else None,
        )


async def client(url: str, number: int, stop: threading.Event, outcomes: Counter[str]) -> None:
    """Send requests until stopped; count what came back."""
    async with httpx.AsyncClient(timeout=120) as http:
        sent = 0
        while not stop.is_set():
            sent += 1
            body = {
                "model": "champion",
                "messages": [{"role": "user", "content": TEXTS[sent % 3]}],
                "max_tokens": TOKENS,
                "user": f"{number}-{sent}",
                "stream": sent % 2 == 0,
            }
            reply = await http.post(f"{url}/v1/chat/completions", json=body)
            kind = "stream" if body["stream"] else "answer"
            whole = reply.status_code == 200 and (
                reply.text.rstrip().endswith("data: [DONE]") and "error" not in reply.text
                if body["stream"]
                else bool(json.loads(reply.text)["choices"][0]["finish_reason"])
            )
            outcomes[kind if whole else f"failed {kind}"] += 1
            if not whole:
                print(reply.status_code, reply.text[:300], file=sys.stderr)


def load(url: str, stop: threading.Event, outcomes: Counter[str], clients: int) -> None:
    async def all_clients() -> None:
        await asyncio.gather(*(client(url, n, stop, outcomes) for n in range(clients)))

    asyncio.run(all_clients())


class Gateway(NamedTuple):
    """url: of a running gateway. outcomes: what its clients got until now."""

    url: str
    ledger: Ledger
    rollouts: Rollouts
    outcomes: Counter[str]


@contextmanager
def gateway_under_load(
    home: Home, engine: Callable[[Entry], Engine], clients: int
) -> Iterator[Gateway]:
    """Serve version 2 to clients that never pause, in threads of this process."""
    prepare(home)
    ledger, rollouts = Ledger(home.ledger, home.path), Rollouts(home.ledger)
    settings = Serving(memory_gib=8.0)
    app = make_app(
        home,
        settings,
        ledger=ledger,
        router_of=lambda catalog: attached_router(home, ledger, catalog),
        pages=[rollout_routes(home, ledger)],
        open_engine=lambda entry, _: engine(entry),
    )
    server = server_of(app, settings)
    outcomes: Counter[str] = Counter()
    stop = threading.Event()
    if not rollouts.all():
        open_rollout(ledger, rollouts, GOOD, 2, strategy="immediate", why="the start")
    with listen(settings, 0, has_keys=True) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        serving.start()
        while not server.started or rollouts.all()[0].open:
            time.sleep(0.1)
        sending = threading.Thread(target=load, args=(url, stop, outcomes, clients), daemon=True)
        sending.start()
        yield Gateway(url, ledger, rollouts, outcomes)
        stop.set()
        sending.join()
        server.should_exit = True
        serving.join()


def main() -> None:
    home = Home(Path(sys.argv[1]).absolute())
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with gateway_under_load(home, Engine, CLIENTS) as (_, ledger, rollouts, outcomes):
        began = time.time()
        while (known := rollouts.all())[-1].open or len(known) < 2 * pairs + 1:
            if not known[-1].open:
                now = deployed(known)
                bad = len(known) % 2 == 0
                challenger = 3 if bad else 3 - (now or 2)  # versions 1 and 2 alternate
                settings_of = BAD if bad else GOOD
                open_rollout(ledger, rollouts, settings_of, challenger, why="under load")
            time.sleep(0.1)
    ended = Counter((rollout.challenger == 3, rollout.state) for rollout in known[1:])
    seconds = time.time() - began
    print(
        "| rollouts | promoted | rolled back | wrong end | answers | streams | failed | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    promoted, back = ended[False, "promoted"], ended[True, "rolled_back"]
    failed = outcomes["failed answer"] + outcomes["failed stream"]
    wrong = len(known) - 1 - promoted - back
    row = (len(known) - 1, promoted, back, wrong, outcomes["answer"], outcomes["stream"], failed)
    print(f"| {' | '.join(map(str, row))} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
