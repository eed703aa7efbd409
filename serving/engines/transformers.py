"""The engine for a laptop: a checkpoint in this process, with transformers and continuous batching.

A thread decodes one token of all requests at a time; a request joins at the next token and leaves
with its last one. A checkpoint is loaded and its prompts are encoded as in
evaluation/generation/decoder.py.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import numpy as np
from jinja2 import TemplateError

from evaluation.generation.decoder import SMALL, encoded, ends_of, load, positions_of
from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.batching.batch import Batch, Row, Token
from serving.batching.text import TextStream
from serving.engines import (
    Chat,
    Delta,
    EngineFailed,
    EngineKind,
    EngineRequest,
    TokenLogprob,
    TooLong,
    Unsupported,
)

ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}
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
    """One completion of a request. limit: its most tokens. held: pieces that wait for others."""

    stream: _Stream
    index: int
    row: Row
    text: TextStream
    limit: int
    whole: bool
    tokens: int = 0
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
    """folder: a Hugging Face checkpoint with tokenizer and chat template. rows: completions that
    are decoded together. Raises OSError or ValueError for any other folder.
    """

    def __init__(self, folder: Path, rows: int = 16) -> None:
        from transformers.utils import logging

        logging.disable_progress_bar()  # no lines on the terminal of a server
        self.model, self.tokenizer = load(folder)
        config = self.model.config.get_text_config()
        states = set(getattr(config, "layer_types", None) or ()) - ATTENTION
        if states or self.model._is_stateful:
            names = ", ".join(sorted(states)) or "a recurrent state"
            raise ValueError(
                f"{names}: rows of this model cannot join a batch; use the engine vllm"
            )
        self.positions = positions_of(self.model)
        self.ends = ends_of(self.model, self.tokenizer)
        self.rows = rows
        self._arrivals: queue.SimpleQueue[_Completion | None] = queue.SimpleQueue()
        self._waiting: list[_Completion] = []
        self._active: dict[Row, _Completion] = {}
        self._thread = Thread(target=self._run, name=f"engine {folder.name}", daemon=True)
        self._thread.start()

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        if request.tools:
            raise Unsupported("tools: the transformers engine has no tool calls: leave them out")
        ids = await self._encoded(request.chat)
        if len(ids) >= self.positions:
            raise TooLong(
                f"the messages are {len(ids)} tokens long, this model has {self.positions} "
                "positions: shorten them"
            )
        if not ids:
            raise Unsupported("the prompt is empty, and this model has no token to begin with")
        if not self.healthy():
            raise EngineFailed("the engine's thread has ended")
        stream = _Stream(asyncio.get_running_loop())
        limit = min(request.max_tokens, self.positions - len(ids))
        for index in range(request.n):
            row = Row(ids, request.temperature, request.top_p, _rng(request, index))
            row.logprobs = request.logprobs
            text = TextStream(self.tokenizer, request.stop)
            self._arrivals.put(_Completion(stream, index, row, text, limit, request.whole))
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

    async def _encoded(self, chat: Chat | str) -> list[int]:
        """Return the prompt's tokens. Raises Unsupported where the chat template refuses it."""
        if not isinstance(chat, str) and not self.tokenizer.chat_template:
            raise Unsupported(
                "this model has no chat template: use /v1/completions or /generate with a `prompt`"
            )
        try:
            # In a thread: a prompt of a megabyte takes seconds, and others' requests go on.
            [ids] = await asyncio.to_thread(encoded, self.tokenizer, [chat])
        except (TemplateError, TypeError, ValueError) as error:  # not a fault of the version
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise Unsupported(f"the model's chat template refuses this: {reason}") from error
        return ids

    def healthy(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        self._arrivals.put(None)
        self._thread.join()

    def _run(self) -> None:
        """Decode until the engine is closed."""
        import torch

        if self.model.device.type == "cpu" and self.model.num_parameters() <= SMALL:
            torch.set_num_threads(1)  # the matrices are too small to share
        batch = Batch(self.model, self.tokenizer.pad_token_id or 0)
        while self._receive():
            try:
                self._advance(batch)
            except Exception as error:  # any failure of the model: its requests are told
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                self._tell_all(EngineFailed(f"the model failed: {reason}"))
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
        gone = [row for row, each in self._active.items() if each.stream.cancelled]
        news: list[tuple[_Completion, Delta]] = []
        if batch.rows and len(gone) < len(batch.rows):
            gone += self._take(batch.rows, batch.step(), news)
        self._remove(batch, gone)
        self._waiting = [each for each in self._waiting if not each.stream.cancelled]
        if joining := self._waiting[: self.rows - len(batch.rows)]:
            self._waiting = self._waiting[len(joining) :]
            self._active |= {each.row: each for each in joining}
            rows = [each.row for each in joining]
            self._remove(batch, self._take(rows, batch.join(rows), news))
        _deliver(news)

    def _remove(self, batch: Batch, rows: Sequence[Row]) -> None:
        if rows:
            batch.leave(rows)
            for row in rows:
                self._active.pop(row, None)

    def _take(
        self, rows: Sequence[Row], tokens: Sequence[Token], news: list[tuple[_Completion, Delta]]
    ) -> list[Row]:
        """Add each row's token to its completion; return the rows that ended."""
        ended = []
        for row, token in zip(rows, tokens, strict=True):
            each = self._active[row]
            if token.broken:
                failure = EngineFailed("the model returned no numbers (NaN)")
                each.stream.loop.call_soon_threadsafe(each.stream.items.put_nowait, failure)
                ended.append(row)
                continue
            delta = self._delta(each, token)
            if delta.ending:
                ended.append(row)
            if ready := each.ready(delta):
                news.append((each, ready))
        return ended

    def _delta(self, each: _Completion, token: Token) -> Delta:
        each.tokens += 1
        if token.id in self.ends:
            return Delta(each.index, each.text.finish(), 1, ending="stop")
        text = each.text.add(token.id)
        logprobs = (self._logprob(token),) if each.row.logprobs is not None else ()
        if each.text.stopped:
            return Delta(each.index, text, 1, logprobs, "stop")
        if each.tokens >= each.limit:
            text += each.text.finish()
            ending = "stop" if each.text.stopped else "length"
            return Delta(each.index, text, 1, logprobs, ending)  # type: ignore[arg-type]
        return Delta(each.index, text, 1, logprobs)

    def _logprob(self, token: Token) -> TokenLogprob:
        top = tuple((self.tokenizer.decode([id]), value) for id, value in token.top)
        return TokenLogprob(self.tokenizer.decode([token.id]), token.logprob, top)

    def _tell_all(self, failure: EngineFailed) -> None:
        for each in [*self._active.values(), *self._waiting]:
            each.stream.loop.call_soon_threadsafe(each.stream.items.put_nowait, failure)
        self._active, self._waiting = {}, []


def _rng(request: EngineRequest, index: int) -> np.random.Generator | None:
    if request.temperature == 0:
        return None
    if request.seed is None:
        return np.random.default_rng()
    return np.random.default_rng([request.seed & (2**64 - 1), index])


def _deliver(news: Sequence[tuple[_Completion, Delta]]) -> None:
    """Hand pieces over, with one wake-up for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Stream, Delta]]] = {}
    for each, delta in news:
        by_loop.setdefault(each.stream.loop, []).append((each.stream, delta))
    for loop, deltas in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_put, deltas)


def _put(deltas: Sequence[tuple[_Stream, Delta]]) -> None:
    for stream, delta in deltas:
        stream.items.put_nowait(delta)


def open_version(entry: Entry, settings: Serving) -> TransformersEngine:
    return TransformersEngine(Path(entry.path), settings.at_once)


ENGINE = EngineKind(open_version)
