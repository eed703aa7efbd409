"""Keeps the versions loaded that the ledger and the router want.

In: the catalog and the router, looked at every `poll_s`. Out: a pool with the champion, the version
before it as its fallback, and the challengers of the router, each with a healthy engine. A new
champion answers only once it is loaded and warm; until then the one before it does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.gateway.catalog import Catalog, LoadFault
from serving.gateway.pool import CannotLoad, LoadedVersion, VersionPool
from serving.gateway.routing import Router
from serving.running_clock import running_clock

FAILED_CHECKS = 3  # in a row, after which an engine is restarted
AGAIN_S = 5.0  # between two attempts to load a version that could not be loaded
logger = logging.getLogger(__name__)


class Keeper:
    """Keeps the versions loaded that the ledger and the router want.

    also: called at each look, in a thread (API keys are read again there).
    """

    def __init__(
        self,
        catalog: Catalog,
        pool: VersionPool,
        router: Router,
        settings: Serving,
        also: Callable[[], None],
    ) -> None:
        self.catalog, self.pool, self.router = catalog, pool, router
        self.settings, self.also = settings, also
        self.running = running_clock()
        self._leaving: set[asyncio.Task[bool]] = set()
        self._poll: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look once, so that the champion answers from the first request on; then regularly."""
        await self.look()
        self._poll = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._poll:
            self._poll.cancel()
            with suppress(asyncio.CancelledError):
                await self._poll
        await asyncio.gather(*self._leaving)
        await self.pool.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.settings.poll_s)
            try:
                await self.look()
            except Exception:  # the gateway goes on with what is loaded
                logger.exception("the versions could not be looked at")

    async def look(self) -> None:
        """Load what is missing, and let go what nobody wants."""
        await asyncio.to_thread(self.catalog.read)
        await asyncio.to_thread(self.also)
        await asyncio.gather(*map(self._check, list(self.pool.loaded.values())))
        catalog = self.catalog
        for entry in self._routed()[:1]:  # the deployed version, before a challenger takes memory
            await self._loaded(entry)
        before = catalog.before(catalog.named)
        if catalog.named and await self._loaded(catalog.named):
            catalog.serving = catalog.named
        elif catalog.serving is None and before and await self._loaded(before):
            catalog.serving = before
        wanted = self.wanted()
        for entry in wanted:
            await self._loaded(entry)
        keep = {entry.version for entry in wanted}
        catalog.loaded = frozenset(self.pool.loaded)
        for version, loaded in list(self.pool.loaded.items()):
            if version not in keep and not loaded.pinned:
                self._let_go(version)

    async def _check(self, loaded: LoadedVersion) -> None:
        """Take out a version whose engine failed its health check repeatedly. It is loaded again
        like any other that is missing; meanwhile another version answers.
        """
        healthy = await asyncio.to_thread(loaded.engine.healthy)
        loaded.sick = 0 if healthy else loaded.sick + 1
        if loaded.sick < FAILED_CHECKS or loaded.closing:
            return
        version = loaded.entry.version
        logger.warning("version %d is restarted: its engine failed the health checks", version)
        self._let_go(version)
        if loaded.pinned:
            await asyncio.sleep(0)  # until it is out
            with suppress(CannotLoad):
                await self.pool.load(loaded.entry, pinned=True)

    def _let_go(self, version: int) -> None:
        # At once: the next look may take minutes, while an engine starts. Requests assigned to a
        # challenger that is out would look like lost ones of the release.
        self.catalog.loaded -= {version}
        leaving = asyncio.create_task(self.pool.unload(version))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    def wanted(self) -> list[Entry]:
        """Return the champion that answers, the router's versions, and the champion before it."""
        serving = self.catalog.serving
        entries = [serving, *self._routed(), self.catalog.before(serving)]
        return list({entry.version: entry for entry in entries if entry}.values())

    def _routed(self) -> list[Entry]:
        entries = self.catalog.entries
        try:
            return [entries[version] for version in self.router.versions() if version in entries]
        except LookupError:  # there is no champion yet
            return []

    async def _loaded(self, entry: Entry) -> bool:
        """Return whether the version is loaded, after an attempt if it is time for one."""
        if entry.version in self.pool.loaded:
            return True
        faults, at, clock = self.catalog.faults, time.time(), time.monotonic()
        if (last := faults.get(entry.version)) and clock - last.clock < AGAIN_S:
            return False
        stood_still = self.running.stood_still
        try:
            await self.pool.load(entry)
        except CannotLoad as error:
            if self.running.stood_still > stood_still:
                logger.warning("the gateway stood still while it loaded: %s", error)
                return False
            faults[entry.version] = LoadFault(str(error), at, clock)
            logger.warning("%s", error)
            return False
        faults.pop(entry.version, None)
        return True
