"""Versions in server processes such as vLLM's and SGLang's: one process for each version, or one
for each base where versions are LoRA adapters.

In: a program's command line and its endpoints for adapters. Out: engines. A folder with the weights
of a LoRA training has the adapter beside them (verl_jobs/config/lora.py).
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.completion import Delta, Engine, EngineFailed, EngineRequest
from serving.server_process import LOCAL, ServerProcess
from serving.upstream import Upstream

ADAPTER = "adapter"  # folder beside the merged weights
BASE = "base"  # name of the base on a server with adapters
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM accepts
LOAD_S = 120.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Served:
    """What one process serves. rank: of the adapters that it can load; 0: it loads none. gpus: that
    the weights are spread over.
    """

    model: str
    name: str
    rank: int = 0
    gpus: int = 1


@dataclass(frozen=True)
class ServerProgram:
    """A server program. command: its arguments. adapter_model: the field `model` of requests for an
    adapter. environment: variables of a process with adapters. health, load, unload: its paths.
    """

    command: Callable[[Served, Serving, int], list[str]]
    adapter_model: str
    load: str
    unload: str
    health: str = "/health"
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, served: Served, settings: Serving) -> ServerProcess:
        """Raises EngineFailed, also where the program is not installed."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = self.environment if served.rank else {}
        command = self.command(served, settings, port)
        return ServerProcess(command, port, served.name, self.health, environment)

    def __call__(self, entry: Entry, settings: Serving) -> Engine:
        """Open a version. Raises EngineFailed."""
        served = base_of(Path(entry.path)) if settings.lora else None
        if served is None:
            return self.start(Served(entry.path, entry.checkpoint), settings)
        return AdapterVersion(self, served, entry, settings)


def base_of(folder: Path) -> Served | None:
    """Return the base of a version's adapter; None if it has none, or the base is gone."""
    try:
        config = json.loads((folder / ADAPTER / "adapter_config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    base, rank = str(config["base_model_name_or_path"]), int(config["r"])
    missing = not base or (Path(base).is_absolute() and not Path(base).is_dir())
    if missing or rank > RANKS[-1]:
        return None  # the merged weights are served
    return Served(base, BASE, next(each for each in RANKS if each >= rank))


@dataclass(eq=False)
class _Shared:
    """A process with the number of versions that use it."""

    process: ServerProcess
    users: int = 0


_shared: dict[tuple[str, int], _Shared] = {}
_sharing = threading.Lock()


class AdapterVersion:
    """A version as an adapter of a process that versions share. Raises EngineFailed."""

    def __init__(
        self, program: ServerProgram, served: Served, entry: Entry, settings: Serving
    ) -> None:
        self.program, self.name = program, entry.checkpoint
        self._key = (served.model, served.rank)
        with _sharing:
            known = _shared.get(self._key)
            if known is None or not known.process.healthy():
                known = _Shared(program.start(served, settings))
                _shared[self._key] = known
            known.users += 1
            self._server = known
        folder = str((Path(entry.path) / ADAPTER).absolute())
        try:
            self._post(program.load, {"lora_name": self.name, "lora_path": folder})
        except EngineFailed:
            self._leave()
            raise
        model = program.adapter_model.format(base=served.name, adapter=self.name)
        self._upstream = Upstream(f"{self._server.process.address}/v1", model)

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        self._server.process.check()
        async for delta in self._upstream.stream(request):
            yield delta

    def healthy(self) -> bool:
        return self._server.process.healthy()

    def close(self) -> None:
        self._upstream.close()
        try:
            if self.healthy():
                self._post(self.program.unload, {"lora_name": self.name})
        except EngineFailed as error:  # it holds memory until the process ends
            logger.warning("%s", error)
        finally:
            self._leave()

    def _leave(self) -> None:
        """End the process with its last version."""
        with _sharing:
            self._server.users -= 1
            if self._server.users:
                return
            if _shared.get(self._key) is self._server:
                del _shared[self._key]
        self._server.process.close()

    def _post(self, path: str, body: dict[str, str]) -> None:
        data, url = json.dumps(body).encode(), f"{self._server.process.address}{path}"
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        try:
            with LOCAL.open(request, timeout=LOAD_S):
                return
        except urllib.error.HTTPError as error:
            reason = error.read(500).decode(errors="replace")
            raise EngineFailed(f"{path} refused the adapter {self.name}: {reason}") from error
        except OSError as error:
            raise EngineFailed(f"{path} does not answer: {error}") from error
