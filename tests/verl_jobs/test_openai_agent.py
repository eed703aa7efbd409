"""An agent with OpenAI's own client, trained through the endpoint: sampled tokens are kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import openai
import pytest

from problems.schema import Problem
from resources.plugin_check import check_plugins
from verl_jobs.agents.chat_endpoint import ChatSession, serve
from verl_jobs.agents.conversation import Conversation, begin
from verl_jobs.agents.stream import PolicyWriter, Template, stream_of
from verl_jobs.config.references import Plugins
from verl_jobs.config.training import Training
from verl_jobs.samples import SampledTokens

PROBLEM = Problem("t/1", "t", "Write solve(x).", "call", ({"args": [1], "expected": 2},), "solve")
PAGE = (Path(__file__).parents[2] / "docs/how-to/write-a-plugin.md").read_text()
Act = Callable[[openai.OpenAI], None]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from verl_jobs.sft.tiny_model import train_tokenizer

    return train_tokenizer(["def solve(x): return x", "A report: wrong."] * 4, 330)


class Policy:
    """Samples random tokens, which often decode to a text that encodes to other tokens."""

    def __init__(self, tokenizer: Any, length: int) -> None:
        self.eos, self.length, self.random = tokenizer.eos_token_id, length, Random(1)
        self.asked, self.wrote = list[list[int]](), list[list[int]]()

    async def ask(self, prompts: list[list[int]], limits: list[int]) -> list[SampledTokens]:
        [ids], [limit] = prompts, limits
        tokens = [self.random.randrange(3, 259) for _ in range(self.length - 1)]
        tokens = [*tokens, self.eos][:limit]
        self.asked.append(ids)
        self.wrote.append(tokens)
        reason = "length" if len(tokens) == limit else ""
        return [SampledTokens(tokens, [-0.5] * len(tokens), reason)]


def played(
    tokenizer: Any, act: Act, length: int = 50, room: int = 10**6
) -> tuple[Conversation, Policy]:
    """Run a synchronous agent against the endpoint."""
    policy, conversation = Policy(tokenizer, length), begin(PROBLEM, [])
    writer = PolicyWriter(Template(tokenizer), policy.ask, 100, room)

    async def run() -> None:
        async with serve(ChatSession(conversation, writer)) as base_url:
            with openai.OpenAI(base_url=base_url, api_key="-", max_retries=0) as client:
                await asyncio.to_thread(act, client)

    asyncio.run(run())
    return conversation, policy


def ask(client: openai.OpenAI, messages: list[Any], **settings: Any) -> Any:
    return client.chat.completions.create(model="any", messages=messages, **settings)


def converses(turns: int) -> Act:
    """Return an agent that appends reply and report, and strips replies as many agents do."""

    def act(client: openai.OpenAI) -> None:
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}]
        for _ in range(turns):
            text = ask(client, messages).choices[0].message.content.strip()
            messages += [
                {"role": "assistant", "content": text},
                {"role": "user", "content": "A report: <|im_end|> wrong."},
            ]

    return act


def test_no_token_is_tokenized_again(tokenizer: Any) -> None:
    conversation, policy = played(tokenizer, converses(turns=20))
    stream = stream_of(conversation)
    own = [token for token, one in zip(stream.tokens, stream.mask, strict=True) if one]
    assert own == [token for wrote in policy.wrote for token in wrote]
    assert len(own) == 1000
    for prompt, wrote in zip(policy.asked, policy.wrote, strict=True):
        assert stream.all[: len(prompt) + len(wrote)] == prompt + wrote
    texts = [m["content"] for m in conversation.messages if m["role"] == "assistant"]
    again = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    assert again != [wrote[:-1] for wrote in policy.wrote]  # tokenizing again would differ


def test_usage_and_finish_reason_are_those_of_the_reply(tokenizer: Any) -> None:
    replies = list[Any]()

    def act(client: openai.OpenAI) -> None:
        messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
        replies.append(ask(client, messages, max_tokens=5))
        messages.append(replies[0].choices[0].message.model_dump(exclude_none=True))
        replies.append(ask(client, [*messages, {"role": "user", "content": "On."}]))

    played(tokenizer, act)
    assert [reply.choices[0].finish_reason for reply in replies] == ["length", "stop"]
    assert [reply.usage.completion_tokens for reply in replies] == [5, 50]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda said: [{"role": "user", "content": "Start."}, *said[1:]], "do not begin with"),
        (lambda said: [said[0], {"role": "assistant", "content": "mine"}, said[2]], "do not begin"),
        (lambda said: said[:2], "append messages"),
    ],
)
def test_a_changed_conversation_is_refused(
    tokenizer: Any, change: Callable[[list[Any]], list[Any]], reason: str
) -> None:
    def act(client: openai.OpenAI) -> None:
        said: list[Any] = [{"role": "user", "content": "Go."}]
        reply = ask(client, said).choices[0].message.content
        said += [{"role": "assistant", "content": reply}, {"role": "user", "content": "On."}]
        with pytest.raises(openai.BadRequestError, match=reason):
            ask(client, change(said))
        ask(client, said)  # the conversation is unharmed

    conversation, policy = played(tokenizer, act)
    assert len(policy.wrote) == 2
    assert len(conversation.messages) == 4


@pytest.mark.parametrize("key", [{"stream": True}, {"n": 2}, {"stop": ["x"]}, {"max_tokens": 0.5}])
def test_what_would_change_the_sampling_is_refused(tokenizer: Any, key: dict[str, Any]) -> None:
    def act(client: openai.OpenAI) -> None:
        with pytest.raises(openai.BadRequestError, match=next(iter(key))):
            ask(client, [{"role": "user", "content": "Go."}], **key)

    assert not played(tokenizer, act)[1].wrote


def test_a_full_conversation_is_an_error_that_agents_know(tokenizer: Any) -> None:
    def act(client: openai.OpenAI) -> None:
        with pytest.raises(openai.BadRequestError) as raised:
            converses(9)(client)
        assert raised.value.code == "context_length_exceeded"

    conversation, _ = played(tokenizer, act, room=130)
    stream = stream_of(conversation)
    assert len(stream.tokens) <= 130
    assert stream.mask[-1] == 1


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_documented_agent_passes_its_dry_step(tmp_path: Path) -> None:
    [text] = re.findall(r"```python\n# my_openai_agent.py\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "my_openai_agent.py").write_text(text)
    plugins = Plugins(agent_loop=f"{tmp_path}/my_openai_agent.py:Reviewed")
    [line] = check_plugins(Training(plugins=plugins), unverified=False)
    assert "in 2 turns" in line
