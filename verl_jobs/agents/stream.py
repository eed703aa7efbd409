"""Token stream of a conversation, with a mask of the policy's own tokens.

Nothing is tokenized twice: the policy's messages keep the tokens that it sampled, and other
messages are appended as the chat template would do.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from verl_jobs.agents.conversation import Conversation
from verl_jobs.samples import BY_LENGTH, EngineWeights, SampledTokens

# placeholders of messages in the template: invisible separators that no text contains
PLACEHOLDER, CONTEXT = "\u2063answer\u2063", "\u2063context\u2063"
MIN_FREE_TOKENS = 8  # minimum number of free tokens to start a message
# the Python tool as chat templates describe it, and what begins a call in some of them
TAG = "<tool_call>"
SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "python",
        "description": "Run a Python program and return what it prints.",
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "The whole program."}},
            "required": ["code"],
        },
    },
}
# prompts, and the maximum tokens for each -> the policy's messages
Ask = Callable[[list[list[int]], list[int]], Awaitable[list[SampledTokens]]]


@dataclass
class Stream:
    """Tokens of a conversation.

    `tokens` follow the prompt; `mask` is 1 on the policy's tokens, `log_probs` 0 on the others.
    `ends`, `weights`: of each of the policy's messages, its end and what sampled it. `reason`: the
    length limit if it truncated any of the policy's messages, otherwise the stop reason of the
    last one.
    """

    prompt: list[int]
    tokens: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    weights: list[EngineWeights] = field(default_factory=list)
    reason: str = ""

    @property
    def all(self) -> list[int]:
        return self.prompt + self.tokens

    def append_reply(self, completion: SampledTokens) -> None:
        tokens, log_probs, reason, weights = completion
        self.tokens += tokens
        self.mask += [1] * len(tokens)
        self.log_probs += log_probs
        self.ends.append(len(self.tokens))
        self.weights.append(weights)
        self.reason = self.reason if self.reason == BY_LENGTH else reason

    def append_context(self, tokens: Sequence[int]) -> None:
        self.tokens += tokens
        self.mask += [0] * len(tokens)
        self.log_probs += [0.0] * len(tokens)


class Template:
    """A tokenizer's chat template.

    tool: describe the Python tool where the template has calls as `<tool_call>` with JSON. Raises
    ValueError if it does not keep a message as it was written.
    """

    def __init__(self, tokenizer: Any, tool: bool = False) -> None:
        self.tokenizer = tokenizer
        text = str(tokenizer.chat_template or "")
        native = tool and "tools" in text and TAG in text and "<function=" not in text
        self.tools = [SCHEMA] if native else None
        marks = {text: id for text, id in tokenizer.get_added_vocab().items() if text.strip()}
        self._marks = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))))
        self._mark_ids = set(marks.values())

    def opening(self, messages: Sequence[dict[str, str]]) -> list[int]:
        ids = self.tokenizer.apply_chat_template(
            list(messages), tools=self.tools, add_generation_prompt=True, return_dict=False
        )
        return list(map(int, ids))

    def plain_tokens(self, text: str) -> list[int]:
        """Return the tokens of a text that another model or a program wrote, never special ones."""
        if self._mark_ids:
            text = self._marks.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return [token for token in ids if token not in self._mark_ids]

    def tokens_between(self, others: Sequence[dict[str, str]], last: int) -> list[int]:
        """Return the tokens between two messages of the policy.

        They are the end of the first message (unless its `last` token is that already), the
        messages of others, and the head of the next one.
        """
        messages = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": PLACEHOLDER},
            *({"role": message["role"], "content": CONTEXT} for message in others),
        ]
        before, marker, after = self.tokenizer.apply_chat_template(
            messages, tools=self.tools, tokenize=False, add_generation_prompt=True
        ).partition(PLACEHOLDER)
        parts = after.split(CONTEXT)
        if not marker or not before or len(parts) != len(others) + 1:
            raise ValueError(
                "the chat template changes or drops earlier messages, so conversations cannot be "
                "trained on: use another template"
            )
        ids: list[int] = self.tokenizer.encode(parts[0], add_special_tokens=False)
        for message, part in zip(others, parts[1:], strict=True):
            ids += self.plain_tokens(message["content"].strip())
            ids += self.tokenizer.encode(part, add_special_tokens=False)
        return ids[1:] if ids[:1] == [last] else ids


class PolicyWriter:
    """The policy, token by token.

    A message gets at most `message_tokens` tokens, a conversation at most `tokens` after its
    prompt, and `whole` with it, if given: a note about a tool may make a prompt longer. Other
    messages are appended only if tokens are left for a reply, so a stream always ends with the
    policy's own tokens.
    """

    def __init__(
        self,
        template: Template,
        ask: Ask,
        message_tokens: int,
        tokens: int,
        whole: int | None = None,
    ) -> None:
        self.template, self.ask = template, ask
        self.message_tokens, self.tokens, self.whole = message_tokens, tokens, whole

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        """Raises the exceptions of `ask`."""
        open_at = [
            at
            for at, conversation in enumerate(conversations)
            if self._append_context(conversation)
        ]
        streams = [stream_of(conversations[at]) for at in open_at]
        limits = [min(self.message_tokens, self._left(stream)) for stream in streams]
        written = await self.ask([stream.all for stream in streams], limits) if streams else []
        texts: list[str | None] = [None] * len(conversations)
        for at, stream, reply in zip(open_at, streams, written, strict=True):
            stream.append_reply(reply)
            texts[at] = str(self.template.tokenizer.decode(reply[0], skip_special_tokens=True))
        return texts

    def _append_context(self, conversation: Conversation) -> bool:
        """Append the messages since the policy's last.

        False if that would leave no tokens for a reply.
        """
        if conversation.stream is None:
            conversation.stream = Stream(self.template.opening(conversation.messages))
            return self._left(conversation.stream) > 0
        stream = conversation.stream
        messages, end = conversation.messages, len(conversation.messages)
        while messages[end - 1]["role"] != "assistant":
            end -= 1
        context = self.template.tokens_between(messages[end:], stream.tokens[-1])
        if len(context) + MIN_FREE_TOKENS > self._left(stream):
            return False
        stream.append_context(context)
        return True

    def _left(self, stream: Stream) -> int:
        most = self.tokens if self.whole is None else self.whole - len(stream.prompt)
        return min(self.tokens, most) - len(stream.tokens)


def stream_of(conversation: Conversation) -> Stream:
    """Return the stream. Raises ValueError if no policy wrote in this conversation."""
    if conversation.stream is None:
        raise ValueError(f"{conversation.problem.problem_id}: no policy wrote in this conversation")
    return conversation.stream
