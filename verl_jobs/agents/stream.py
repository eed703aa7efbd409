"""The tokens of a conversation as the policy saw and wrote them, each with the one fact that training needs: whether the policy wrote it.

Nothing is tokenized twice: what the policy wrote stays the tokens that it wrote, and what others said is put behind them as the chat template would.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from verl_jobs.agents.conversation import Conversation
from verl_jobs.samples import BY_LENGTH

ANSWER = "\u2063answer\u2063"  # stands for an answer in the template: invisible separators, which nobody says
LEAST = 8  # tokens of room without which an answer is not begun
Written = tuple[
    list[int], list[float], str
]  # token ids, their log-probabilities, why it ended (verl_jobs/decoding.py)
Ask = Callable[
    [list[list[int]], list[int]], Awaitable[list[Written]]
]  # prompts and most tokens of each -> what the policy wrote


@dataclass
class Stream:
    """`tokens` follow the prompt; `mask` is 1 where the policy wrote, `log_probs` 0 where it did not. `ends`: where each of its messages ends.

    `reason`: why it ended: by its length where that cut any of the policy's messages, else as the last one did.
    """

    prompt: list[int]
    tokens: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    reason: str = ""

    @property
    def all(self) -> list[int]:
        return self.prompt + self.tokens

    def wrote(self, written: Written) -> None:
        tokens, log_probs, reason = written
        self.tokens += tokens
        self.mask += [1] * len(tokens)
        self.log_probs += log_probs
        self.ends.append(len(self.tokens))
        self.reason = self.reason if self.reason == BY_LENGTH else reason

    def heard(self, tokens: Sequence[int]) -> None:
        self.tokens += tokens
        self.mask += [0] * len(tokens)
        self.log_probs += [0.0] * len(tokens)


class Template:
    """A tokenizer's chat template. Raises ValueError where it does not keep an answer as it was said."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def opening(self, messages: Sequence[dict[str, str]]) -> list[int]:
        ids = self.tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=True, return_dict=False
        )
        return list(map(int, ids))

    def between(self, said: str, last: int) -> list[int]:
        """What stands between an answer and the next: the end of the one, unless its `last` token is that, what was said, the head of the other."""
        messages = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": said},
        ]
        before, found, after = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        ).partition(ANSWER)
        if not found or not before:
            raise ValueError(
                "the chat template changes or drops earlier answers: a conversation cannot be trained on with it"
            )
        ids: list[int] = self.tokenizer.encode(after, add_special_tokens=False)
        return ids[1:] if ids[:1] == [last] else ids


class PolicyWriter:
    """The policy, token by token. A message gets at most `message_tokens`, a conversation `tokens` after its first question.

    What others say is taken in only where room is left for an answer, so that a stream always ends with the policy's own words.
    """

    def __init__(self, template: Template, ask: Ask, message_tokens: int, tokens: int) -> None:
        self.template, self.ask = template, ask
        self.message_tokens, self.tokens = message_tokens, tokens

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        """Raises what `ask` raises."""
        able = [at for at, conversation in enumerate(conversations) if self._listened(conversation)]
        streams = [stream_of(conversations[at]) for at in able]
        limits = [min(self.message_tokens, self.tokens - len(stream.tokens)) for stream in streams]
        written = await self.ask([stream.all for stream in streams], limits) if streams else []
        texts: list[str | None] = [None] * len(conversations)
        for at, stream, answer in zip(able, streams, written, strict=True):
            stream.wrote(answer)
            texts[at] = str(self.template.tokenizer.decode(answer[0], skip_special_tokens=True))
        return texts

    def _listened(self, conversation: Conversation) -> bool:
        """Takes in what was said since the policy last spoke; False where that would leave no room for a word."""
        if conversation.stream is None:
            conversation.stream = Stream(self.template.opening(conversation.messages))
            return True
        stream = conversation.stream
        heard = self.template.between(conversation.messages[-1]["content"], stream.tokens[-1])
        if len(stream.tokens) + len(heard) + LEAST > self.tokens:
            return False
        stream.heard(heard)
        return True


def stream_of(conversation: Conversation) -> Stream:
    """Raises ValueError for a conversation that no policy wrote in."""
    if conversation.stream is None:
        raise ValueError(f"{conversation.problem.problem_id}: no policy wrote in this conversation")
    return conversation.stream
