"""Models that take part in conversations without being trained: a local checkpoint or an endpoint.

The endpoint is OpenAI-compatible.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import ContextTooLong, NoReply
from verl_jobs.agents.conversation import UNANSWERED, Conversation

if TYPE_CHECKING:
    from decoding.batch import Row

logger = logging.getLogger(__name__)
BATCH = 128  # conversations decoded together


class EndpointWriter:
    """A model behind an endpoint, with one concurrent request per conversation.

    A conversation that fills the model's context gets no message. Raises EndpointDown, and NoReply
    unless it is lenient. lenient: a conversation without a reply ends as UNANSWERED.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        tokens: int,
        temperature: float = 0.0,
        seed: int = 0,
        lenient: bool = False,
    ) -> None:
        self.endpoint, self.lenient = endpoint, lenient
        self.settings: dict[str, Any] = {
            "model": model,
            "max_tokens": tokens,
            "temperature": temperature,
            "seed": seed,
        }

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        return list(
            await asyncio.gather(
                *(asyncio.to_thread(self._ask, conversation) for conversation in conversations)
            )
        )

    def _ask(self, conversation: Conversation) -> str | None:
        try:
            return self.endpoint.ask(self.settings | {"messages": conversation.messages}).text
        except ContextTooLong:
            return None
        except NoReply:
            if not self.lenient:
                raise
            conversation.ended = UNANSWERED
            logger.warning("no reply from %s", self.endpoint.url, exc_info=True)
            return None


class FrozenWriter:
    """A small checkpoint on the CPU, decoded in batches.

    The same conversation always gets the same reply, whatever the rest of the batch; at temperature
    0 the greedy one. Raises OSError if the folder has no model; code from a checkpoint is never
    run.
    """

    def __init__(self, folder: Path, tokens: int, temperature: float = 0.0, seed: int = 0) -> None:
        from decoding.checkpoint import load

        self.checkpoint = load(folder, "cpu")
        self.tokens, self.temperature, self.seed = tokens, temperature, seed
        self._turn = Lock()

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        return await asyncio.to_thread(self._write, conversations)

    def _write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        from decoding.batch import decode

        rows = [self._row(c.messages) for c in conversations]
        order = sorted((row for row in rows if row.limit > 0), key=lambda row: len(row.prompt))
        with self._turn:
            for start in range(0, len(order), BATCH):
                batch = order[start : start + BATCH]
                decode(self.checkpoint.model, self.checkpoint.pad, batch)
        return [self.checkpoint.decode(row.tokens) if row.limit > 0 else None for row in rows]

    def _row(self, messages: list[dict[str, str]]) -> Row:
        from decoding.batch import Row
        from decoding.draws import uniform_of

        ids = self.checkpoint.encode(messages)
        limit = min(self.tokens, self.checkpoint.positions - len(ids))
        row = Row(ids, limit, self.checkpoint.ends, self.temperature)
        if self.temperature > 0:
            row.uniform = uniform_of(self.seed, ids)
        return row
