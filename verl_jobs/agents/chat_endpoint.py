"""An endpoint with OpenAI's API for one conversation of an agent with the policy.

In: the agent's messages. Out: replies of the policy, whose token ids and log-probabilities are kept
as sampled: a request must repeat the messages so far, and only the messages after them become
tokens.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from verl_jobs.agents.conversation import Conversation, Message
from verl_jobs.agents.stream import PolicyWriter, stream_of
from verl_jobs.samples import BY_LENGTH

# Keys that would change what is sampled, or the form of the reply. Those of sampling, such as
# `temperature`, are the training's and ignored.
REFUSED = ("stream", "tools", "functions", "stop", "response_format", "logprobs", "logit_bias")
HOST = "127.0.0.1"


class Refused(ValueError):
    """A request that cannot be answered; `code` is OpenAI's."""

    def __init__(self, reason: str, code: str = "invalid_request") -> None:
        super().__init__(reason)
        self.code = code


class ChatSession:
    """The conversation of one agent with the policy."""

    def __init__(self, conversation: Conversation, writer: PolicyWriter) -> None:
        self.conversation, self.writer, self.most = conversation, writer, writer.message_tokens
        self._turn = asyncio.Lock()

    async def reply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to a request. Raises Refused."""
        if used := [key for key in REFUSED if body.get(key)]:
            raise Refused(f"{used[0]} is not supported while training: leave it out")
        if body.get("n") not in (None, 1):
            raise Refused("n must be 1 while training")
        messages = _messages(body)
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or self.most
        if not isinstance(limit, int) or limit < 1:
            raise Refused(f"max_tokens must be a whole number above 0, got {limit!r}")
        async with self._turn:
            self._append(messages)
            self.writer.message_tokens = min(self.most, limit)
            [text] = await self.writer.write([self.conversation])
            if text is None:
                raise Refused("no tokens are left for a reply", "context_length_exceeded")
            self.conversation.messages.append({"role": "assistant", "content": text})
            return self._response(text)

    def _append(self, messages: list[Message]) -> None:
        """Take the messages after those so far. Raises Refused if these differ."""
        seen = self.conversation.messages if self.conversation.stream else []
        same = [(m["role"], m["content"].strip()) for m in messages[: len(seen)]]
        new = messages[len(seen) :]
        if same != [(m["role"], m["content"].strip()) for m in seen]:
            raise Refused(
                "the messages do not begin with those of the last request and its reply, so the "
                "sampled tokens would be lost: append to them"
            )
        if not new or (seen and any(message["role"] == "assistant" for message in new)):
            raise Refused("append messages of another role than assistant")
        self.conversation.messages = [*seen, *new]

    def _response(self, text: str) -> dict[str, Any]:
        stream = stream_of(self.conversation)
        sampled = sum(stream.mask[stream.ends[-2] if len(stream.ends) > 1 else 0 :])
        last = stream.tokens[-1] == self.writer.template.tokenizer.eos_token_id
        message = {"role": "assistant", "content": text}
        reason = "stop" if last or stream.reason != BY_LENGTH else "length"
        return {
            "id": f"chatcmpl-{len(stream.ends)}",
            "object": "chat.completion",
            "created": 0,
            "model": "policy",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {
                "prompt_tokens": len(stream.all) - sampled,
                "completion_tokens": sampled,
                "total_tokens": len(stream.all),
            },
        }


def _messages(body: Mapping[str, Any]) -> list[Message]:
    chat = body.get("messages")
    if not isinstance(chat, list) or not all(isinstance(each, Mapping) for each in chat):
        raise Refused("messages must be a list of objects")
    return [{"role": str(each.get("role")), "content": _text(each.get("content"))} for each in chat]


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise Refused("the content of a message must be text")
    return "".join(map(str, texts))


@asynccontextmanager
async def serve(session: ChatSession) -> AsyncIterator[str]:
    """Serve a session on this machine; yield its `base_url`, which others cannot guess."""

    async def completions(request: web.Request) -> web.Response:
        try:
            body = await request.json()
            if not isinstance(body, Mapping):
                raise Refused("the body must be an object")
            return web.json_response(await session.reply(body))
        except Refused as refusal:
            reason, code = str(refusal), refusal.code
        except ValueError as error:
            reason, code = f"the body is no JSON: {error}", "invalid_request"
        answer = {"message": reason, "type": "invalid_request_error", "code": code}
        return web.json_response({"error": answer}, status=400)

    app, path = web.Application(client_max_size=2**26), f"/{secrets.token_urlsafe(16)}/v1"
    app.router.add_post(f"{path}/chat/completions", completions)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://{HOST}:{port}{path}"
    finally:
        await runner.cleanup()
