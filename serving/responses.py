"""Requests and replies of OpenAI's responses, as far as the gateway supports them: text without
tools. Nothing is stored, so a conversation is sent whole each time.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, PositiveInt

from resources.registry.ledger import Entry
from serving.completion import EngineReply, EngineRequest
from serving.openai import Neutral, Strict, Text, TextFormat


class TextPart(BaseModel):
    """A part of a message. Only its text is used."""

    type: Literal["input_text", "output_text"]
    text: Text


class InputMessage(BaseModel):
    """A message of the conversation, also one of an earlier reply's `output` with all of its
    fields; those without a meaning here are left out.
    """

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: Text | list[TextPart]

    def plain(self) -> dict[str, Any]:
        """Return the message with its text in one piece."""
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text for part in content)
        return {"role": "system" if self.role == "developer" else self.role, "content": content}


class TextSettings(Strict):
    format: TextFormat | None = None
    verbosity: Literal["medium"] | None = None


class ResponseRequest(Neutral):
    """A request for a response. Unlike OpenAI's, the default temperature is 0."""

    model: str | None = Field(
        "champion", description="`champion`, a checkpoint's name, or a version."
    )
    input: Text | Annotated[list[InputMessage], Field(min_length=1)]
    instructions: Text | None = None
    max_output_tokens: PositiveInt | None = None
    temperature: float | None = Field(0.0, ge=0, le=2)
    top_p: float | None = Field(1.0, gt=0, le=1)
    stream: bool | None = False
    text: TextSettings | None = None
    tools: list[Any] | None = Field(None, max_length=0)
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    truncation: Literal["disabled"] | None = None
    include: list[Any] | None = Field(None, max_length=0)
    background: Literal[False] | None = None
    top_logprobs: int | None = Field(None, ge=0, le=0)
    user: str | None = Field(None, description="Its requests go to the same arm.")
    priority: int | None = Field(0, ge=-10, le=0, description="Below 0: after all others.")

    def engine_request(self, default_tokens: int) -> EngineRequest:
        chat = [{"role": "system", "content": self.instructions}] if self.instructions else []
        if isinstance(self.input, str):
            chat.append({"role": "user", "content": self.input})
        else:
            chat += [message.plain() for message in self.input]
        return EngineRequest(
            chat,
            self.max_output_tokens or default_tokens,
            self.temperature or 0.0,
            1.0 if self.top_p is None else self.top_p,
            whole=not self.stream,
        )


def response(
    id: str, entry: Entry, body: ResponseRequest, created_at: int, reply: EngineReply | None
) -> dict[str, Any]:
    """Return the whole response. reply: None while it is generated."""
    status = status_of(reply)
    return {
        "id": f"resp-{id}",
        "object": "response",
        "created_at": created_at,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata or {},
        "model": entry.checkpoint,
        "output": [message(id, reply)] if reply else [],
        "parallel_tool_calls": False,
        "previous_response_id": None,
        "store": False,
        "temperature": body.temperature,
        "text": {"format": {"type": "text"}},
        "tool_choice": "none",
        "tools": [],
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": _usage(reply) if reply else None,
        "user": body.user,
    }


def status_of(reply: EngineReply | None) -> str:
    if reply is None:
        return "in_progress"
    return "incomplete" if reply.finish_reason == "length" else "completed"


def message(id: str, reply: EngineReply | None) -> dict[str, Any]:
    """Return the item of `output`."""
    return {
        "type": "message",
        "id": f"msg-{id}",
        "role": "assistant",
        "status": status_of(reply),
        "content": [part(reply.text)] if reply else [],
    }


def part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(reply: EngineReply) -> dict[str, Any]:
    return {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": reply.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }
