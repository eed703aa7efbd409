"""`kill -9` of a gateway, its engines, Ray's replicas and its database, at random moments of a
release under load: with one retry no request is lost or answered by another version than recorded,
no observation is counted twice, and the release continues at its step.

RATCHET_KILLS: kills of all parts together, 100 by default; a quarter of them with Ray.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import cycle, pairwise
from pathlib import Path

import psutil
import pytest

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.releases import Release, Releases, deployed
from serving.gateway.observations import Observation, Observations
from serving.release.arms import Arms, FirstRequests
from serving.release.evidence import guardrails_of
from tests.resources.postgres import PASSWORD, postgres
from tests.sandbox.engines import ray_cluster
from tests.serving import vllm_stand_in
from tests.serving.gateway_server import eventually, promoted
from tests.serving.killed_gateway import CLIENTS, PATIENCE_S, Gateway, clients
from tests.serving.test_replicas import replicas
from tests.serving.test_serve_process import ready
from tests.serving.traffic import SETTINGS, open_release

KILLS = int(os.environ.get("RATCHET_KILLS", "100"))
STEPS = SETTINGS.model_copy(
    update={
        "shares": (0.2, 0.5), "bake_s": 10.0, "watch_s": 10.0, "min_pairs": 20, "errors_margin": 0.9
    }
)  # fmt: skip
NAMES = {"old": 1, "new": 2}  # model of an answer -> version


def kill_under_load(
    gateway: Gateway,
    place: Path | str,
    kills: int,
    ways: dict[str, Callable[[], None]],
    whole: Callable[[], bool],
) -> None:
    """Kill in each way in turn, each time after every client has got answers again.

    whole: whether all engines run, so that never two of them are dead at once.
    """
    ledger, releases = Ledger(place, gateway.home.path), Releases(place)
    done: Counter[str] = Counter()
    with gateway.runs():
        with clients(gateway.url) as threads:
            for _, way in zip(range(kills), cycle(ways), strict=False):
                before = [len(each.answered) for each in threads]

                def settled(before: list[int] = before) -> bool:
                    assert not any(each.lost for each in threads), [each.lost for each in threads]
                    return whole() and all(
                        len(each.answered) > start + 2
                        for each, start in zip(threads, before, strict=True)
                    )

                eventually(settled, PATIENCE_S)
                known = releases.all()
                if not (known and known[-1].open):
                    challenger = 3 - (deployed(known) or 1)
                    open_release(ledger, releases, STEPS, challenger)
                time.sleep(random.uniform(0, 0.5))
                ways[way]()
                done[way] += 1
                print(sum(done.values()), way, flush=True)
            eventually(lambda: ready(gateway.url), PATIENCE_S)
            eventually(lambda: not releases.all()[-1].open, PATIENCE_S)
        gateway.process.terminate()
        gateway.process.wait(PATIENCE_S)
    assert not any(each.lost for each in threads)
    texts = {pair for each in threads for pair in each.texts}
    assert len(texts) == len({model for model, _ in texts}), texts  # one text each, never a part
    answered = {name: model for each in threads for name, model in each.answered.items()}
    url = place if isinstance(place, str) else ""
    rows = list(Observations(gateway.home.observations, url).read())
    recorded = Counter(row.response for _, row in rows)
    assert set(recorded.values()) == {1}
    versions = {row.response: row.version for _, row in rows}
    missing = [name for name in answered if name not in recorded]
    wrong = [n for n in answered if n in versions and versions[n] != NAMES[answered[n]]]
    assert not wrong
    for release in releases.all():
        goes_on(release, rows)
    ended = Counter(release.state for release in releases.all())
    retries = sum(each.retries for each in threads)
    print(
        f"{dict(done)}: {len(answered)} answers, {retries} retried, {len(missing)} not recorded, "
        f"releases {dict(ended)}"
    )
    assert len(missing) <= 4 * CLIENTS * done["gateway"]  # of the last 50 ms before each kill
    if not url:
        with closing(sqlite3.connect(gateway.home.observations)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            numbers = connection.execute("SELECT MAX(number), COUNT(*) FROM observations")
            last, count = numbers.fetchone()
            assert last == count
    assert len(ledger.history()) == 2


def goes_on(release: Release, rows: list[tuple[int, Observation]]) -> None:
    """Assert that a release took its steps in turn, and that the evidence of each event is that of
    the rows until then, each counted once.
    """
    steps = [event.step for event in release.events]
    assert all(later - step in (0, 1) for step, later in pairwise(steps)), steps
    for event in release.events:
        if "guardrails" not in event.detail:
            continue
        arms, last = Arms(release), event.detail["observations"]
        first = FirstRequests(arms.plan)
        own = [row for n, row in rows if n <= last and row.release == release.id]
        arms.first.add([row for row in own if first.admits(row)])
        assert json.loads(json.dumps(guardrails_of(arms.first))) == event.detail["guardrails"]


@pytest.mark.soak
def test_gateway_engines_and_database_are_killed(
    home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    with postgres() as server:
        place = server.fresh("kills")
        ledger = Ledger(place, home.path)
        for name in NAMES:
            promoted(ledger, name, checkpoints[name])
        profile = tmp_path / "kills.yaml"
        profile.write_text(
            f"extends: embedded\nstorage: {{ledger: '{place}'}}\n"
            "serving: {engine: vllm, poll_s: 0.2}\n"
        )
        bin_ = vllm_stand_in.install(tmp_path / "bin")
        path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
        gateway = Gateway(home, profile, {"PATH": path, "PGPASSWORD": PASSWORD})

        def restart_database() -> None:
            server.stop()
            time.sleep(random.uniform(0, 2))
            server.start()

        def whole() -> bool:
            return len(gateway.engines()) == 2 and gateway.loaded() == 2

        ways = {
            "gateway": gateway.kill,
            "engine": gateway.kill_engine,
            "database": restart_database,
        }
        kill_under_load(gateway, place, KILLS - KILLS // 4, ways, whole)


@pytest.mark.soak
def test_gateway_and_replicas_are_killed(
    home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    ledger = Ledger(home.ledger, home.path)
    for name in NAMES:
        promoted(ledger, name, checkpoints[name])
    with ray_cluster() as cluster:
        profile = tmp_path / "kills.yaml"
        profile.write_text(
            "extends: embedded\nserving:\n  engine: ray\n  poll_s: 0.2\n  replicas:\n"
            f"    {{address: '{cluster.address}', min_replicas: 2, max_replicas: 2, cpus: 0.25}}\n"
        )
        gateway = Gateway(home, profile, {})

        def kill_replica() -> None:
            with suppress(IndexError, psutil.NoSuchProcess):
                random.choice(replicas()).kill()

        ways = {"gateway": gateway.kill, "replica": kill_replica}
        kill_under_load(gateway, home.ledger, KILLS // 4, ways, lambda: len(replicas()) == 4)
