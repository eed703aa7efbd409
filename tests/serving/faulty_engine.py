"""Engines of tests: one that fails on demand, and the rest of one that has no model.

The first is the transformers engine, except for prompts that name a fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.completion import Delta, EngineFailed, EngineRequest
from serving.engines.transformers import TransformersEngine


class NoModel:
    """The rest of an engine without a model; `stream` is the test's own."""

    def healthy(self) -> bool:
        return True

    def close(self) -> None:
        pass


class FaultyEngine(TransformersEngine):
    """faults: words of a prompt that this version stumbles over: "fail" or "crash" at once,
    "break" or "hang" after the first token, "nan" in the weights, "decline" to answer.
    """

    def __init__(self, folder: Path, faults: frozenset[str]) -> None:
        super().__init__(folder)
        self.faults = faults
        self.asked = 0

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        words = {fault for fault in self.faults if fault in str(request.chat)}
        if "1 + 1" not in str(request.chat):
            self.asked += 1
        if "fail" in words:
            raise EngineFailed("the engine was told to fail")
        if "crash" in words:
            raise KeyError("a fault of the engine's own")
        if "decline" in words:
            yield Delta(0, "I'm sorry, but I can't help with that.", 8, ending="stop")
            return
        if "nan" in words:
            next(iter(self.checkpoint.model.parameters())).data.fill_(float("nan"))
        async for delta in super().stream(request):
            yield delta
            if "break" in words:
                raise EngineFailed("the engine was told to break")
            if "hang" in words:
                await asyncio.sleep(3600)


class Faulty:
    """Opens versions; `faults` by checkpoint name."""

    def __init__(self, **faults: set[str]) -> None:
        self.faults = faults
        self.opened: dict[str, FaultyEngine] = {}

    def __call__(self, entry: Entry, settings: Serving) -> FaultyEngine:
        faults = frozenset(self.faults.get(entry.checkpoint, ()))
        engine = FaultyEngine(Path(entry.path), faults)
        self.opened[entry.checkpoint] = engine
        return engine
