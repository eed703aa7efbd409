"""Workers as Ray actors, each with a local worker on its node: the sandbox grows with the cluster.

Each actor gets one job at a time, so that nothing queues up in Ray; waiting jobs stay with the
owner. If an actor or a node dies, its job is retried elsewhere. Ray must be running, and the
sandbox package importable on its nodes.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

from sandbox.backends import BackendKind, WorkerDied
from sandbox.backends.local import IsolationError, LocalBackend, LocalChannel

START_S = 60.0
FREE_S = 10.0
CLOSE_S = 10.0


class RayWorker:
    """Runs in the actor: a local backend with one worker."""

    def __init__(self, isolation: str, packages: tuple[str, ...]) -> None:
        self._backend = LocalBackend(isolation, packages)

    def open(self) -> dict[str, str]:
        try:
            # Not `LocalBackend.open`: Ray has reserved one CPU for this actor, and what else runs
            # on this node is not known here.
            self._channel = LocalChannel(self._backend.isolation, self._backend.packages)
        except IsolationError as refused:
            return {"refused": str(refused)}
        return {"isolation": self._channel.isolation}

    def ask(self, payload: bytes, timeout_s: float) -> bytes:
        self._channel.send(payload, timeout_s)
        return self._channel.hear(timeout_s)

    def close(self) -> None:
        self._channel.close()
        self._backend.close()

    def pids(self) -> tuple[int, int]:
        """Return the pids of the actor and of its worker."""
        return os.getpid(), self._channel.pid


class RayBackend:
    """Starts workers as actors of the Ray cluster that this process is in, or that RAY_ADDRESS
    names.

    isolation, packages: as in LocalBackend.
    Raises IsolationError if there is no cluster: a local Ray would offer no more than this machine.
    """

    def __init__(self, isolation: str, packages: tuple[str, ...]) -> None:
        import ray

        self.isolation, self.packages = isolation, packages
        if not ray.is_initialized():
            try:
                ray.init(address="auto", log_to_driver=False)
            except ConnectionError as error:
                raise IsolationError(
                    f"no Ray cluster to join ({error}): start one, set RAY_ADDRESS, or choose "
                    "another backend"
                ) from None
        self.workers = max(1, int(ray.available_resources().get("CPU", 0)))

    def open(self, number: int, of: int) -> RayChannel:
        """Wait for a free CPU, for a limited time: a cluster that lost a node must not delay
        closing the sandbox.
        """
        import ray

        until = time.monotonic() + FREE_S
        while ray.available_resources().get("CPU", 0) < 1:
            if time.monotonic() > until:
                raise WorkerDied(
                    "the cluster has no free CPU for a sandbox actor: configure fewer workers"
                )
            time.sleep(0.2)
        return RayChannel(self.isolation, self.packages)

    def close(self) -> None:
        """Nothing to do: actors end with their channels, and the Ray connection stays open for its
        owner.
        """


class RayChannel:
    """One actor. Uses one CPU of the cluster, on the emptiest node."""

    where = "ray: "

    def __init__(self, isolation: str, packages: tuple[str, ...]) -> None:
        import ray

        self.actor: Any = (
            ray.remote(RayWorker)
            .options(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")
            .remote(isolation, packages)
        )
        try:
            hello = self._get(self.actor.open.remote(), START_S)
        except WorkerDied:
            self.close()
            raise
        if "isolation" not in hello:
            self.close()
            raise IsolationError(f"on a node of the cluster: {hello['refused']}")
        self.isolation = self.where + hello["isolation"]

    def send(self, payload: bytes, timeout_s: float) -> None:
        self._promise = self.actor.ask.remote(payload, timeout_s)

    def hear(self, timeout_s: float) -> bytes:
        return bytes(self._get(self._promise, timeout_s + CLOSE_S))

    def _get(self, promise: Any, timeout_s: float) -> Any:
        import ray
        from ray.exceptions import GetTimeoutError, RayError

        try:
            return ray.get(promise, timeout=timeout_s)
        except GetTimeoutError:
            raise WorkerDied(
                f"a sandbox actor did not answer within {timeout_s:.0f} s: check that the "
                "cluster has a free CPU for each actor"
            ) from None
        except RayError as error:  # the actor, its node or its worker is gone
            raise WorkerDied(
                f"a sandbox actor is gone: {' '.join(str(error).split())[:300]}"
            ) from None

    def close(self) -> None:
        import ray
        from ray.exceptions import RayError

        with contextlib.suppress(WorkerDied):
            self._get(self.actor.close.remote(), CLOSE_S)
        with contextlib.suppress(RayError, ValueError):
            ray.kill(self.actor)


BACKEND = BackendKind(RayBackend)
