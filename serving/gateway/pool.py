"""The loaded versions: load, warm up, share, drain, unload.

In: entries of the ledger and a function that opens one. Out: engines whose files are those that the
ledger names. A version is used only after it answered a warm-up request, and is released only after
its last request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from artifacts.integrity import CorruptArtifact
from artifacts.pull import pull, pull_champion
from artifacts.store import Store
from artifacts.tensors import element_count, weights_hash
from resources.config.serving import DRAIN_S, Serving
from resources.registry.ledger import Entry
from serving.completion import Engine, EngineFailed, EngineRequest, Unsupported, complete, one_line
from serving.gateway.admission import Admission
from serving.gateway.breaker import CircuitBreaker
from serving.gateway.refusals import Refused

OpenEngine = Callable[[Entry, Serving], Engine]
WARM_UP = EngineRequest([{"role": "user", "content": "1 + 1"}], 4)
WARM_UP_TEXT = EngineRequest("1 + 1", 4)  # for a base model, which has no chat template
WARM_UP_S = 120.0  # else a server that never answers would stop every look at the versions
GIB = 2**30


class CannotLoad(RuntimeError):
    """A version cannot be loaded; the message has the reason and the fix."""


@dataclass(eq=False)
class LoadedVersion:
    """A version with its engine. users: requests under way. pinned: an operator loaded it. sick:
    failed health checks in a row.
    """

    entry: Entry
    engine: Engine
    bytes: int
    admission: Admission
    breaker: CircuitBreaker
    weights: str  # hash of the tensors; empty where a server elsewhere has them
    users: int = 0
    pinned: bool = False
    sick: int = 0
    closing: bool = False
    idle: asyncio.Event = field(default_factory=asyncio.Event)


class VersionPool:
    """For one event loop. Loading runs in a thread, one version at a time.

    store: versions that are not on this machine are copied from it.
    """

    def __init__(self, open_engine: OpenEngine, settings: Serving, store: Store) -> None:
        self.open_engine, self.settings, self.store = open_engine, settings, store
        self.loaded: dict[int, LoadedVersion] = {}
        self._loading = asyncio.Lock()

    async def load(self, entry: Entry, *, pinned: bool = False) -> LoadedVersion:
        """Return the version with its engine, which is loaded now if it was not.

        Raises CannotLoad: changed files, no memory, a folder that the engine cannot open.
        """
        async with self._loading:
            if present := self.loaded.get(entry.version):
                present.pinned |= pinned
                return present
            size = await asyncio.to_thread(self._pulled_bytes, entry)
            self._check_memory(entry, size)
            engine, weights = await asyncio.to_thread(self._open, entry)
            try:
                async with asyncio.timeout(WARM_UP_S):
                    await warm_up(engine)
            except (EngineFailed, ValueError, TimeoutError) as error:
                await asyncio.to_thread(engine.close)
                raise CannotLoad(_cannot(entry, one_line(error))) from error
            admission = Admission(self.settings.at_once, self.settings.waiting)
            breaker = CircuitBreaker(self.settings.breaker)
            loaded = LoadedVersion(entry, engine, size, admission, breaker, weights, pinned=pinned)
            self.loaded[entry.version] = loaded
            return loaded

    async def unload(self, version: int) -> bool:
        """Take the version out at once, and release it after its last request. Return whether it
        was loaded. After DRAIN_S seconds it is released by force.
        """
        loaded = self.loaded.pop(version, None)
        if loaded is None:
            return False
        loaded.closing = True
        if loaded.users:
            try:
                async with asyncio.timeout(DRAIN_S):
                    await loaded.idle.wait()
            except TimeoutError:
                pass
        await asyncio.to_thread(loaded.engine.close)
        return True

    @asynccontextmanager
    async def use(self, loaded: LoadedVersion) -> AsyncIterator[LoadedVersion]:
        """Hold a version, so that it is not released. It may have been taken out by then."""
        loaded.users += 1
        try:
            yield loaded
        finally:
            loaded.users -= 1
            if loaded.closing and not loaded.users:
                loaded.idle.set()

    async def close(self) -> None:
        await asyncio.gather(*map(self.unload, list(self.loaded)))

    def require(self, entry: Entry) -> LoadedVersion:
        """Return a loaded version. Raises Refused (404)."""
        if (loaded := self.loaded.get(entry.version)) is None:
            names = ", ".join(str(version) for version in sorted(self.loaded)) or "none"
            message = f"version {entry.version} ({entry.checkpoint}) is not loaded: loaded: {names}"
            raise Refused(404, "model_not_loaded", message)
        return loaded

    def _check_memory(self, entry: Entry, size: int) -> None:
        used = sum(each.bytes for each in self.loaded.values())
        if self.loaded and used + size > self.settings.memory_gib * GIB:
            names = ", ".join(str(version) for version in sorted(self.loaded))
            raise CannotLoad(
                f"version {entry.version} needs {size / GIB:.2f} GiB, versions {names} use "
                f"{used / GIB:.2f} of {self.settings.memory_gib:g}: unload one, or raise "
                "serving.memory_gib"
            )

    def _pulled_bytes(self, entry: Entry) -> int:
        """Return the memory of the version's weights, which are copied here if needed; 0 where
        another server has them.
        """
        if self.settings.upstream:
            return 0
        try:
            return weight_bytes(pull(self.store, entry.path))
        except Exception as error:  # each object store has its own errors
            raise CannotLoad(_cannot(entry, one_line(error))) from error

    def _open(self, entry: Entry) -> tuple[Engine, str]:
        """Return the version's engine, and the hash of its weights."""
        path, weights = Path(entry.path), ""
        try:
            if not self.settings.upstream:
                known = path.with_name(f".{path.name}.files.json")
                pull_champion(self.store, path, entry.checkpoint_hash, known)
                weights = weights_hash(path, entry.checkpoint_hash)
            return self.open_engine(entry, self.settings), weights
        except CorruptArtifact as error:
            raise CannotLoad(str(error)) from error
        except (OSError, ValueError, LookupError, RuntimeError) as error:
            # EngineFailed; and of libraries: no GPU memory, a folder with other fields
            raise CannotLoad(_cannot(entry, one_line(error))) from error


async def warm_up(engine: Engine) -> None:
    """Send a first request. Raises EngineFailed, ValueError."""
    try:
        await complete(engine, WARM_UP)
    except Unsupported:
        await complete(engine, WARM_UP_TEXT)


def _cannot(entry: Entry, reason: str) -> str:
    return (
        f"cannot load version {entry.version} ({entry.checkpoint}) from {entry.path}: {reason}: "
        "it is tried again every few seconds"
    )


def weight_bytes(folder: Path) -> int:
    """Return the memory of a checkpoint's weights in single precision, 4 bytes a number."""
    return 4 * sum(element_count(path) for path in folder.glob("*.safetensors"))
