"""Only tokens of the policy have mask 1, on real conversations and several chat templates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.prompt import prompt_text
from problems.schema import Problem
from rewards.score import Score
from sandbox.protocol import Verdict
from verl_jobs.agents.conversation import Conversation, ExecutorResult, begin
from verl_jobs.agents.play import NoReviewer, Reviews, SelfReview, converse
from verl_jobs.agents.rollout import rollout_of
from verl_jobs.agents.shaping import improvements
from verl_jobs.agents.stream import PolicyWriter, Template, stream_of
from verl_jobs.samples import SampledTokens

PROBLEM = Problem(
    problem_id="t/1",
    source="t",
    statement="Write solve(x).",
    style="call",
    entry_point="solve",
    visible_tests=1,
    tests=({"args": [1], "expected": 2}, {"args": [2], "expected": 4}),
)
LLAMA = (
    "{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] | trim }}<|endoftext|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
# like templates that drop earlier reasoning
FORGETS = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ m['content'] }}{% endif %}{% endfor %}"
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from verl_jobs.sft.tiny_model import train_tokenizer

    return train_tokenizer(
        ["def solve(x): return x", "Write the whole program again, mended. 1 of 2 examples pass."]
        * 4,
        330,
    )


class Fails:
    """An executor for which no program is correct; `shares` of its visible tests pass."""

    def __init__(self, shares: Sequence[float] = ()) -> None:
        self.shares = list(shares)

    def findings(self, conversations: Sequence[Conversation]) -> list[ExecutorResult]:
        passed = round(4 * self.shares.pop(0)) if self.shares else 0
        return [
            ExecutorResult(Verdict.WA, passed, 5, f"{passed} of 5 examples pass.")
            for _ in conversations
        ]


class Policy:
    """A policy that writes given tokens and records its prompts and completions."""

    def __init__(self, completions: Sequence[list[int]], eos: int) -> None:
        self.completions, self.eos, self.prompts, self.append_reply = (
            list(completions),
            eos,
            list[list[int]](),
            list[list[int]](),
        )

    async def ask(self, prompts: list[list[int]], limits: list[int]) -> list[SampledTokens]:
        written = []
        for ids, limit in zip(prompts, limits, strict=True):
            tokens = self.completions.pop(0)[:limit]
            self.prompts.append(ids)
            self.append_reply.append(tokens)
            reason = "completed" if tokens[-1] == self.eos else "length"
            written.append(SampledTokens(tokens, [-0.5] * len(tokens), reason))
        return written


def played(
    tokenizer: Any,
    completions: Sequence[list[int]],
    turns: int,
    room: int = 400,
    itself: bool = False,
    shares: Sequence[float] = (),
) -> tuple[Conversation, Policy]:
    policy = Policy(completions, tokenizer.eos_token_id)
    writer = PolicyWriter(Template(tokenizer), policy.ask, 40, room)
    conversation = begin(PROBLEM, [{"role": "user", "content": prompt_text(PROBLEM)}])
    reviews: Reviews = SelfReview(writer) if itself else NoReviewer()
    asyncio.run(converse([conversation], writer, Fails(shares), reviews, turns))
    return conversation, policy


REPLIES = st.lists(
    st.tuples(st.lists(st.integers(3, 259), min_size=1, max_size=30), st.booleans()),
    min_size=8,
    max_size=8,
)


@settings(max_examples=60)
@given(replies=REPLIES, turns=st.integers(1, 4), room=st.integers(40, 400), itself=st.booleans())
def test_the_mask_is_one_only_on_tokens_of_the_policy(
    tokenizer: Any, replies: list[tuple[list[int], bool]], turns: int, room: int, itself: bool
) -> None:
    completions = [ids + [tokenizer.eos_token_id] * ends for ids, ends in replies]
    conversation, policy = played(tokenizer, completions, turns, room, itself)
    stream = stream_of(conversation)
    own = [token for token, one in zip(stream.tokens, stream.mask, strict=True) if one]
    assert own == [token for wrote in policy.append_reply for token in wrote]
    assert set(stream.mask) <= {0, 1}
    assert len(stream.log_probs) == len(stream.tokens) <= room
    assert all(
        p == (-0.5 if one else 0.0) for p, one in zip(stream.log_probs, stream.mask, strict=True)
    )
    assert stream.mask[-1] == 1  # it ends with a token of the policy
    # nothing is tokenized again between sampling and training
    for prompt, wrote in zip(policy.prompts, policy.append_reply, strict=True):
        assert stream.all[: len(prompt) + len(wrote)] == prompt + wrote
    assert [stream.tokens[end - 1] for end in stream.ends] == [
        wrote[-1] for wrote in policy.append_reply
    ]
    cut = any(wrote[-1] != tokenizer.eos_token_id for wrote in policy.append_reply)
    assert stream.reason == ("length" if cut else "completed")  # also for an earlier program


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("template", [None, LLAMA])
def test_a_stream_decodes_to_the_chat_template(
    tokenizer: Any, ends: bool, template: str | None
) -> None:
    import copy

    tokenizer = copy.deepcopy(tokenizer)
    end = tokenizer.eos_token_id
    if template:
        tokenizer.chat_template, tokenizer.eos_token, end = (
            template,
            "<|endoftext|>",
            tokenizer.convert_tokens_to_ids("<|endoftext|>"),
        )
    ids = tokenizer.encode("def solve(x): return x", add_special_tokens=False)
    conversation, _ = played(tokenizer, [ids + [end] * ends, [*ids, end]], turns=2)
    whole = tokenizer.apply_chat_template(conversation.messages, tokenize=False)
    assert whole.removesuffix("\n") == tokenizer.decode(
        stream_of(conversation).all, skip_special_tokens=False
    )


def test_a_template_that_drops_earlier_completions_is_refused(tokenizer: Any) -> None:
    import copy

    forgetful = copy.deepcopy(tokenizer)
    forgetful.chat_template = FORGETS
    with pytest.raises(ValueError, match="chat template"):
        played(forgetful, [[5, 6], [7]], turns=2)


def test_rewards_lie_on_the_last_token_and_on_improvements(tokenizer: Any) -> None:
    completions = [[10, 11], [12, 13, 14], [15]]
    conversation, _ = played(tokenizer, completions, turns=3, shares=[0.25, 0.75, 0.5])
    stream, score = stream_of(conversation), Score(0.4, Verdict.WA)
    assert rollout_of(conversation, score, shaping=0.0).rewards == {len(stream.tokens) - 1: 0.4}
    shaped = rollout_of(conversation, score, shaping=0.5)
    first, second, third = (end - 1 for end in stream.ends)
    assert shaped.rewards == pytest.approx({first: 0.5 * 0.2, second: 0.5 * 0.4 * 0.5, third: 0.4})
    assert all(stream.mask[at] for at in shaped.rewards)
    assert shaped.last_tokens == 1


def test_shaping_rewards_lie_on_programs_and_not_on_reviews(tokenizer: Any) -> None:
    conversation, _ = played(
        tokenizer, [[10], [20, 21], [11]], turns=2, itself=True, shares=[0.0, 1.0]
    )
    stream = stream_of(conversation)
    shaped = rollout_of(conversation, Score(0.0, Verdict.WA), shaping=1.0)
    assert shaped.rewards == pytest.approx({stream.ends[0] - 1: 0.0, stream.ends[2] - 1: 0.5 * 0.8})


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_a_deliberately_poor_first_program_gains_nothing(shares: list[float]) -> None:
    gained = improvements(shares)
    assert min(gained) >= 0
    assert sum(gained) <= max(shares) + 1e-9
    assert sum(gained) <= sum(improvements([max(shares)])) + 1e-9
