"""Requests and replies of OpenAI's chat completions and completions, as far as the gateway supports
them.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt, model_validator

from resources.registry.ledger import Entry
from serving.engines import Chat, EngineReply, EngineRequest


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "user", "assistant"]
    content: str


class Request(BaseModel):
    """A field that the gateway would ignore is refused by name. Unlike OpenAI's, the default
    temperature is 0.
    """

    model_config = ConfigDict(extra="forbid")

    model: str = "champion"
    max_tokens: PositiveInt | None = None
    temperature: NonNegativeFloat = 0.0
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int | None = None
    stop: str | list[str] | None = None
    n: Literal[1] = 1
    stream: Literal[False] = False
    user: str | None = None

    def to_engine(self, prompt: Chat | str, max_tokens: int) -> EngineRequest:
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        return EngineRequest(prompt, max_tokens, self.temperature, self.top_p, self.seed, stop)


class ChatRequest(Request):
    """A request for a chat completion."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: PositiveInt | None = None

    @model_validator(mode="after")
    def one_length(self) -> ChatRequest:
        if self.max_tokens and self.max_completion_tokens:
            raise ValueError("max_tokens and max_completion_tokens are both set: set only one")
        return self

    def engine_request(self, default_tokens: int) -> EngineRequest:
        return self.to_engine(
            [m.model_dump() for m in self.messages],
            self.max_tokens or self.max_completion_tokens or default_tokens,
        )


class TextRequest(Request):
    """A request for the completion of a text by a base model."""

    prompt: str

    def engine_request(self, default_tokens: int) -> EngineRequest:
        return self.to_engine(self.prompt, self.max_tokens or default_tokens)


def completion(entry: Entry, reply: EngineReply, *, chat: bool) -> dict[str, Any]:
    """Return the reply; `model` names the checkpoint, `system_fingerprint` hashes its weights."""
    content = (
        {"message": {"role": "assistant", "content": reply.text}} if chat else {"text": reply.text}
    )
    return {
        "id": f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": entry.checkpoint,
        "system_fingerprint": entry.checkpoint_hash[:12],
        "choices": [
            {"index": 0, **content, "logprobs": None, "finish_reason": reply.finish_reason}
        ],
        "usage": {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        },
    }


def models(entry: Entry) -> dict[str, Any]:
    """List `champion`, which is always the current champion, and its checkpoint's name; `root` is
    the hash of its weights.
    """
    names = dict.fromkeys(("champion", entry.checkpoint))
    one = {"object": "model", "created": 0, "owned_by": "ratchet", "root": entry.checkpoint_hash}
    return {"object": "list", "data": [{"id": name, **one} for name in names]}


def failure(message: str, kind: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
