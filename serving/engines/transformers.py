"""The engine for a laptop: a checkpoint in this process, with transformers and continuous batching.

A thread decodes one token of all requests at a time; a request joins at the next token and leaves
with its last one. transformers has a continuous batching of its own; it has neither seeds nor stop
strings for each request, and on a CPU it takes several times as long
(docs/measurements/serving.md).
"""

from __future__ import annotations

import asyncio
import queue
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from problems.columns import ProblemError
from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.completion import (
    Chat,
    Delta,
    EngineFailed,
    EngineRequest,
    PromptTooLong,
    TokenLogprob,
    Unsupported,
    one_line,
)
from serving.engines import EngineKind

if TYPE_CHECKING:
    from decoding.batch import Batch, Row

COLLECT_S = 0.2  # pieces of a whole answer are handed over this often
Item = Delta | Exception


@dataclass(eq=False)
class _Stream:
    """A request under way, seen from the event loop that waits for it."""

    loop: asyncio.AbstractEventLoop
    items: asyncio.Queue[Item] = field(default_factory=asyncio.Queue)
    cancelled: bool = False


@dataclass(eq=False)
class _Completion:
    """One completion of a request. held: pieces that wait for others."""

    stream: _Stream
    index: int
    row: Row
    whole: bool
    held: list[Delta] = field(default_factory=list)
    told_at: float = 0.0

    def ready(self, delta: Delta) -> Delta | None:
        """Return the pieces up to this one as one; None while they wait for others."""
        self.held.append(delta)
        now = time.monotonic()
        if self.whole and not delta.ending and now - self.told_at < COLLECT_S:
            return None
        pieces, self.held, self.told_at = self.held, [], now
        if len(pieces) == 1:
            return delta
        return Delta(
            self.index,
            "".join(each.text for each in pieces),
            sum(each.tokens for each in pieces),
            tuple(token for each in pieces for token in each.logprobs),
            delta.ending,
        )


class TransformersEngine:
    """Generates with transformers in this process.

    folder: a Hugging Face checkpoint with tokenizer and chat template. rows: completions that are
    decoded together. Raises OSError or ValueError for any other folder.
    """

    def __init__(self, folder: Path, rows: int = 16) -> None:
        from transformers.utils import logging

        from decoding.checkpoint import load

        logging.disable_progress_bar()  # no lines on the terminal of a server
        self.checkpoint = load(folder)
        self.rows = rows
        self._arrivals: queue.SimpleQueue[_Completion | None] = queue.SimpleQueue()
        self._waiting: list[_Completion] = []
        self._active: dict[Row, _Completion] = {}
        self._thread = Thread(target=self._run, name=f"engine {folder.name}", daemon=True)
        self._thread.start()

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        if request.needs:
            names = ", ".join(request.needs)
            raise Unsupported(f"{names}: the engine transformers has none: leave this out")
        ids = await self._encoded(request.chat)
        if len(ids) >= self.checkpoint.positions:
            what = "prompt" if isinstance(request.chat, str) else "messages"
            raise PromptTooLong(
                f"This model's maximum context length is {self.checkpoint.positions} tokens. "
                f"However, your {what} resulted in {len(ids)} tokens. Please reduce the length of "
                f"the {what}."
            )
        if not ids:
            raise Unsupported("the prompt is empty, and this model has no token to begin with")
        if not self.healthy():
            raise EngineFailed("the engine's thread has ended")
        stream = _Stream(asyncio.get_running_loop())
        for index in range(request.n):
            row = self._row(ids, request, index)
            self._arrivals.put(_Completion(stream, index, row, request.whole))
        open_, prompt_tokens = request.n, len(ids)
        try:
            while open_:
                item = await stream.items.get()
                if isinstance(item, Exception):
                    raise item
                open_ -= item.ending is not None
                if prompt_tokens:
                    item = Delta(
                        item.index, item.text, item.tokens, item.logprobs, item.ending,
                        prompt_tokens,
                    )  # fmt: skip
                    prompt_tokens = 0
                yield item
        finally:
            stream.cancelled = True

    def _row(self, ids: list[int], request: EngineRequest, index: int) -> Row:
        from decoding.batch import Row
        from decoding.draws import nth_seed, uniform_of
        from decoding.text import TextStream

        limit = min(request.max_tokens, self.checkpoint.positions - len(ids))
        row = Row(ids, limit, self.checkpoint.ends, request.temperature, request.top_p)
        if request.temperature > 0:
            seed = secrets.randbits(31) if request.seed is None else request.seed
            row.uniform = uniform_of(nth_seed(seed, index), ids)
        row.text = TextStream(self.checkpoint.tokenizer, request.stop)
        row.alternatives = request.logprobs
        return row

    async def _encoded(self, chat: Chat | str) -> list[int]:
        """Return the prompt's tokens. Raises Unsupported where the chat template refuses it."""
        if not isinstance(chat, str) and not self.checkpoint.tokenizer.chat_template:
            raise Unsupported(
                "this model has no chat template: use /v1/completions, or /generate with `raw`"
            )
        try:
            # In a thread: a prompt of a megabyte takes seconds, and others' requests go on.
            return await asyncio.to_thread(self.checkpoint.encode, chat)
        except ProblemError as error:  # not a fault of the version
            raise Unsupported(one_line(error)) from error
        except (TypeError, ValueError) as error:
            raise Unsupported(f"the tokenizer refuses this: {one_line(error)}") from error

    def healthy(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        self._arrivals.put(None)
        self._thread.join()

    def _run(self) -> None:
        """Decode until the engine is closed."""
        import torch

        from decoding.batch import Batch

        if self.checkpoint.single_threaded:
            torch.set_num_threads(1)
        batch = Batch(self.checkpoint.model, self.checkpoint.pad)
        while self._receive():
            try:
                self._advance(batch)
            except Exception as error:  # any failure of the model: its requests are told
                self._tell_all(EngineFailed(f"the model failed: {one_line(error)}"))
                batch.leave(batch.rows)
        self._tell_all(EngineFailed("the version was unloaded"))

    def _receive(self) -> bool:
        """Take what has arrived, and wait only when there is nothing to do. False: closed."""
        while True:
            try:
                arrived = self._arrivals.get(block=not (self._active or self._waiting))
            except queue.Empty:
                return True
            if arrived is None:
                return False
            self._waiting.append(arrived)

    def _advance(self, batch: Batch) -> None:
        """Decode one token of each row, after new rows have joined."""
        cancelled = [row for row, each in self._active.items() if each.stream.cancelled]
        batch.leave(cancelled)
        for row in cancelled:
            del self._active[row]
        rows = list(batch.step()) if batch.rows else []
        self._waiting = [each for each in self._waiting if not each.stream.cancelled]
        if joining := self._waiting[: self.rows - len(batch.rows)]:
            self._waiting = self._waiting[len(joining) :]
            self._active |= {each.row: each for each in joining}
            batch.join([each.row for each in joining])
            rows += [each.row for each in joining]
        news: list[tuple[_Completion, Item]] = []
        for row in rows:
            each = self._active.pop(row) if row.ending else self._active[row]
            if row.ending == "broken":
                news.append((each, EngineFailed("the model returned no numbers (NaN)")))
            elif ready := each.ready(self._delta(each)):
                news.append((each, ready))
        _deliver(news)

    def _delta(self, each: _Completion) -> Delta:
        row = each.row
        if row.ending == "end":
            return Delta(each.index, row.piece, 1, ending="stop")
        logprobs = (self._logprob(row),) if row.alternatives is not None else ()
        ending = row.ending if row.ending in (None, "length") else "stop"
        return Delta(each.index, row.piece, 1, logprobs, ending)

    def _logprob(self, row: Row) -> TokenLogprob:
        decode = self.checkpoint.tokenizer.decode  # with special tokens
        top = tuple((decode([id]), value) for id, value in row.top)
        return TokenLogprob(decode([row.tokens[-1]]), row.log_prob, top)

    def _tell_all(self, failure: EngineFailed) -> None:
        for each in [*self._active.values(), *self._waiting]:
            each.stream.loop.call_soon_threadsafe(each.stream.items.put_nowait, failure)
        self._active, self._waiting = {}, []


def _deliver(news: Sequence[tuple[_Completion, Item]]) -> None:
    """Hand pieces over, with one wake-up for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Stream, Item]]] = {}
    for each, delta in news:
        by_loop.setdefault(each.stream.loop, []).append((each.stream, delta))
    for loop, deltas in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_put, deltas)


def _put(items: Sequence[tuple[_Stream, Item]]) -> None:
    for stream, item in items:
        stream.items.put_nowait(item)


def open_version(entry: Entry, settings: Serving) -> TransformersEngine:
    return TransformersEngine(Path(entry.path), settings.at_once)


ENGINE = EngineKind(open_version)
