"""Replicas of a version on a Ray cluster, by Ray Serve: started, replaced and scaled there.

In: `serving.replicas` with the engine that each replica runs. The version's folder must be readable
on every node. The gateway stays one process, so that queue, rate limits and records are one too.
https://docs.ray.io/en/latest/serve/index.html
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from resources.config.serving import DRAIN_S, Serving
from resources.registry.ledger import Entry
from serving.completion import Delta, EngineFailed, EngineRequest, PromptTooLong, Unsupported
from serving.engines import EngineKind, engine_of

KNOWN = {each.__name__: each for each in (PromptTooLong, Unsupported, EngineFailed)}
_starting = threading.Lock()


class EngineReplica:
    """Runs in a worker process of the cluster. engine: name of the engine that holds the model."""

    def __init__(self, engine: str, entry: Entry, settings: Serving) -> None:
        self.engine = engine_of(engine)(entry, settings)

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta | tuple[str, str], None]:
        """Yield the pieces; a failure is its name and message, since Ray wraps exceptions."""
        try:
            async for delta in self.engine.stream(request):
                yield delta
        except (PromptTooLong, Unsupported, EngineFailed) as error:
            yield type(error).__name__, str(error)

    def check_health(self) -> None:
        """Raise EngineFailed where the engine cannot answer. Ray Serve calls it regularly, and
        replaces a replica after three failures.
        """
        if not self.engine.healthy():
            raise EngineFailed("the replica's engine failed its health check")

    def __del__(self) -> None:
        if hasattr(self, "engine"):  # else it could not be opened
            self.engine.close()


class Replicated:
    """The replicas of one version, as an engine. Raises EngineFailed where they cannot start."""

    def __init__(self, entry: Entry, settings: Serving) -> None:
        _join(settings.replicas.address)
        from ray import serve
        from ray.exceptions import RayError
        from ray.serve.exceptions import RayServeException

        # The same name after `kill -9` of a gateway: the next one takes over what still runs.
        self.name = f"ratchet-{entry.version}-{entry.checkpoint_hash[:12]}"
        replicas = _deployment(settings).bind(settings.replicas.engine, entry, settings)
        try:
            self._handle = serve.run(replicas, name=self.name, route_prefix=None).options(
                stream=True, method_name="stream"
            )
        except (RuntimeError, RayError, RayServeException) as error:
            with suppress(RayError, RayServeException):  # the cluster is gone
                self.close()
            raise EngineFailed(f"the replicas cannot start: {_reason(error)}") from error

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        """Yield the pieces. A replica that ends before its first one is replaced once by another.

        Raises PromptTooLong, Unsupported, EngineFailed.
        """
        from ray.exceptions import RayError
        from ray.serve.exceptions import RayServeException

        for last in (False, True):
            started = False
            pieces = self._handle.remote(request)
            try:
                async for piece in pieces:
                    if not isinstance(piece, Delta):
                        name, message = piece
                        raise KNOWN[name](message)
                    started = True
                    yield piece
                return
            except (RayError, RayServeException) as error:
                if started or last:
                    raise EngineFailed(f"a replica failed: {_reason(error)}") from error
            finally:
                pieces.cancel()  # nothing happens if it has ended

    def healthy(self) -> bool:
        """Return whether Ray Serve still runs the version; it replaces single replicas itself."""
        from ray import serve

        try:
            return self.name in serve.status().applications
        except Exception:  # whatever Ray raises when its cluster is gone
            return False

    def close(self) -> None:
        from ray import serve

        serve.delete(self.name)


def _join(address: str) -> None:
    """Connect this process to the cluster, and start Ray Serve there without its HTTP proxies."""
    with _starting:
        try:
            import ray
            from ray import serve

            if not ray.is_initialized():
                ray.init(address=address, log_to_driver=False)
            serve.start(proxy_location="Disabled")
        except ImportError as error:
            raise EngineFailed(f"the engine ray needs ray[serve]: {_reason(error)}") from error
        except ConnectionError as error:
            raise EngineFailed(
                f"serving.replicas needs a Ray cluster ({_reason(error)}): start one with `ray "
                "start --head`, or set serving.replicas.address"
            ) from error
        except RuntimeError as error:  # another version of Ray or Python, for example
            raise EngineFailed(f"cannot join the Ray cluster: {_reason(error)}") from error


def _deployment(settings: Serving) -> Any:
    """Return the deployment of Ray Serve."""
    from ray import serve

    replicas = settings.replicas
    scale: dict[str, Any] = {"num_replicas": replicas.min_replicas}
    if replicas.max_replicas > replicas.min_replicas:
        scale = {
            "autoscaling_config": {
                "min_replicas": replicas.min_replicas,
                "max_replicas": replicas.max_replicas,
                "target_ongoing_requests": replicas.ongoing,
            }
        }
    return serve.deployment(
        **scale,
        max_ongoing_requests=settings.at_once,
        graceful_shutdown_timeout_s=DRAIN_S,
        ray_actor_options={"num_cpus": replicas.cpus, "num_gpus": replicas.gpus},
    )(EngineReplica)


def _reason(error: BaseException) -> str:
    """Return the last line of Ray's message, which names the cause; the others are a traceback."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


ENGINE = EngineKind(Replicated)
