"""Models that take part in conversations without being trained: a local checkpoint or an endpoint.

The endpoint is OpenAI-compatible.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import ContextTooLong, NoReply
from verl_jobs.agents.conversation import UNANSWERED, Conversation

logger = logging.getLogger(__name__)
BATCH = 128  # conversations decoded together


class EndpointWriter:
    """A model behind an endpoint, with one concurrent request per conversation.

    Raises EndpointDown, and NoReply unless it is lenient. lenient: a conversation without a reply
    gets no message. It ends as UNANSWERED, unless the reason was a lack of tokens.
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
        except NoReply as error:
            if not self.lenient:
                raise
            if not isinstance(error, ContextTooLong):
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
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True, dtype=torch.float32
        ).eval()
        self.tokens, self.temperature, self.seed = tokens, temperature, seed
        self.positions = int(getattr(self.model.config, "max_position_embeddings", 1 << 30))
        self._turn = Lock()

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        return await asyncio.to_thread(self._write, conversations)

    def _write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        from verl_jobs.decoding import decode_batch

        prompts = [
            self.tokenizer.apply_chat_template(
                c.messages, add_generation_prompt=True, return_dict=False
            )
            for c in conversations
        ]
        requests = {
            at: self._request(ids) for at, ids in enumerate(prompts) if len(ids) < self.positions
        }
        ends, pad, texts = (
            {int(self.tokenizer.eos_token_id)},
            int(self.tokenizer.pad_token_id or 0),
            dict[int, str](),
        )
        order = sorted(requests, key=lambda at: len(prompts[at]))
        with self._turn:
            for start in range(0, len(order), BATCH):
                batch = order[start : start + BATCH]
                for at, (tokens, _, _) in zip(
                    batch,
                    decode_batch(self.model, [requests[at] for at in batch], ends, pad),
                    strict=True,
                ):
                    texts[at] = self.tokenizer.decode(tokens, skip_special_tokens=True)
        return [texts.get(at) for at in range(len(conversations))]

    def _request(self, ids: list[int]) -> dict[str, Any]:
        import numpy as np

        limit = min(self.tokens, self.positions - len(ids))
        digest = hashlib.sha256(np.array([self.seed, *ids], np.int64).tobytes()).digest()
        return {
            "prompt_ids": list(map(int, ids)), "max_tokens": limit, "temperature": self.temperature,
            "top_k": -1, "top_p": 1.0, "stop": frozenset(),
            "uniform": np.random.default_rng([*digest]).random(limit),
        }  # fmt: skip
