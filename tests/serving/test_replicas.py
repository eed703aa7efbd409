"""Replicas of a version by Ray Serve, on a Ray of this machine whose nodes are processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from resources.config.serving import Replicas
from resources.home import Home
from serving.completion import EngineFailed
from tests.sandbox.engines import cmdline, ray_cluster
from tests.serving.gateway_server import ask, content, eventually, fast, promote, running

SETTINGS = fast(
    engine="ray", replicas=Replicas(address="", min_replicas=2, max_replicas=2, cpus=0.5)
)


@pytest.fixture
def cluster() -> Iterator[Any]:
    with ray_cluster() as cluster:
        yield cluster


def replicas() -> list[psutil.Process]:
    """Return the processes of this test's replicas."""
    below = psutil.Process().children(recursive=True)
    return [process for process in below if "ServeReplica" in " ".join(cmdline(process))]


def test_max_replicas_is_at_least_min_replicas() -> None:
    with pytest.raises(ValueError, match="less than min_replicas"):
        Replicas(min_replicas=3, max_replicas=2)


def test_a_replica_whose_engine_ended_fails_the_health_check_of_ray_serve(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    from serving.engines.ray import EngineReplica

    replica = EngineReplica("transformers", promote(home, "old", checkpoints["old"]), SETTINGS)
    replica.check_health()
    replica.engine.close()
    with pytest.raises(EngineFailed, match="health check"):
        replica.check_health()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_replica_that_is_killed_loses_no_request(
    home: Home, checkpoints: dict[str, Path], cluster: Any
) -> None:
    from serving.gateway.app import make_app

    promote(home, "old", checkpoints["old"])
    with running(make_app(home, SETTINGS), SETTINGS) as url:
        expected = content(ask(url)[1])
        first = {process.pid for process in replicas()}
        assert len(first) == 2

        def with_a_retry(number: int) -> str:
            if number == 15:
                replicas()[0].kill()
            status, reply = ask(url)
            if status != 200:
                status, reply = ask(url)
            return content(reply) if status == 200 else f"{status} {reply}"

        with ThreadPoolExecutor(4) as pool:
            assert Counter(pool.map(with_a_retry, range(60))) == {expected: 60}
        eventually(
            lambda: len({p.pid for p in replicas()} - first) == 1 and len(replicas()) == 2, 60
        )
        status, reply = ask(url, messages=[{"role": "user", "content": "x" * 500}])
        assert (status, reply["error"]["code"]) == (400, "context_length_exceeded")
    eventually(lambda: not replicas())
