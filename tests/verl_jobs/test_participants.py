"""Conversations of a training with scripted policies, the real sandbox and the real reward."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError

from problems.dataset.rl_parquet import ground_truth
from problems.prompt import prompt_text
from problems.schema import Problem
from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import ContextTooLong, NoReply, Reply
from rewards.config import RewardConfig
from rewards.question import Question, question_truth
from rewards.score import Score
from rewards.scorer import Scorer
from sandbox.protocol import Job, Limits, Report, Verdict
from sandbox.sandbox import SandboxConfig
from verl_jobs.agents.conversation import Conversation
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.participants import Participants, request_of
from verl_jobs.agents.review import comment_reward, reviewer_rollouts
from verl_jobs.agents.rollout import Rollout, RolloutRequest
from verl_jobs.agents.stream import PolicyWriter, Template
from verl_jobs.agents.writers import EndpointWriter, FrozenWriter
from verl_jobs.config.agents import Agents
from verl_jobs.config.training import Training
from verl_jobs.samples import SampledTokens

DOUBLE = Problem(
    problem_id="t/double",
    source="t",
    statement="Write solve(x): twice x.",
    style="call",
    entry_point="solve",
    visible_tests=1,
    tests=tuple({"args": [x], "expected": 2 * x} for x in (2, 3, 7)),
    limits=Limits(wall_s=9.0, cpu_s=2.0),
)
RIGHT, WRONG, SQUARE = (
    "def solve(x):\n    return 2 * x",
    "def solve(x):\n    return x + 1",
    "def solve(x):\n    return x * x",
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from verl_jobs.sft.tiny_model import train_tokenizer

    return train_tokenizer([RIGHT, WRONG, "Write the whole program again, mended."] * 4, 330)


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    scorer = Scorer(RewardConfig())
    yield scorer
    scorer.sandbox.close()


def row(problem: Problem = DOUBLE) -> RolloutRequest:
    prompt = {
        "raw_prompt": [{"role": "user", "content": prompt_text(problem)}],
        "reward_model": {"ground_truth": ground_truth(problem)},
    }
    return request_of(prompt)


def policy(tokenizer: Any, words: Sequence[str], room: int = 300) -> PolicyWriter:
    texts = iter(words)

    async def ask(prompts: list[list[int]], limits: list[int]) -> list[SampledTokens]:
        tokens = [
            [*tokenizer.encode(next(texts), add_special_tokens=False), tokenizer.eos_token_id]
            for _ in prompts
        ]
        return [
            SampledTokens(ids[:limit], [-1.0] * len(ids[:limit]), "")
            for ids, limit in zip(tokens, limits, strict=True)
        ]

    return PolicyWriter(Template(tokenizer), ask, 100, room)


def play(
    scorer: Scorer,
    tokenizer: Any,
    words: Sequence[str],
    agents: Agents,
    rows: int = 1,
    room: int = 300,
) -> list[Rollout | None]:
    prompts, writer = [row()] * rows, policy(tokenizer, words, room)
    return asyncio.run(Participants(agents).play(prompts, writer, Executor(scorer), scorer.score))


def test_the_reward_scores_the_last_program_on_all_tests(scorer: Scorer, tokenizer: Any) -> None:
    [conversation] = play(scorer, tokenizer, [WRONG, RIGHT], Agents(turns=2))
    assert conversation
    assert conversation.score.solved
    assert conversation.messages == 4
    [alone] = play(scorer, tokenizer, [RIGHT], Agents(turns=2))
    assert alone
    assert alone.reward == conversation.reward
    assert alone.stream.mask == [1] * len(alone.stream.tokens)


def test_passing_only_visible_tests_ends_the_conversation_unsolved(
    scorer: Scorer, tokenizer: Any
) -> None:
    [fooled] = play(scorer, tokenizer, [SQUARE, RIGHT], Agents(turns=2, shaping=0.2))
    assert fooled
    assert fooled.messages == 2
    assert not fooled.score.solved
    assert fooled.score.value is not None
    assert fooled.reward == pytest.approx(fooled.score.value + 0.2)


def test_a_fixed_program_earns_less_shaping_than_a_first_one(
    scorer: Scorer, tokenizer: Any
) -> None:
    shaped = Agents(turns=2, shaping=0.2)
    [conversation], [at_once] = (
        play(scorer, tokenizer, words, shaped) for words in ([WRONG, RIGHT], [RIGHT])
    )
    assert conversation
    assert at_once
    assert conversation.reward == pytest.approx(at_once.reward - 0.1)


def test_a_conversation_cut_by_its_token_budget_is_still_scored(
    scorer: Scorer, tokenizer: Any
) -> None:
    [cut] = play(scorer, tokenizer, [WRONG, RIGHT], Agents(turns=2), room=40)
    assert cut
    assert cut.messages == 3
    assert len(cut.stream.tokens) <= 40
    assert cut.stream.mask[-1] == 1
    assert not cut.score.solved


def test_a_completion_without_a_verdict_gives_no_rollout(scorer: Scorer, tokenizer: Any) -> None:
    def loses_the_second(pairs: Sequence[tuple[str, str]]) -> list[Score]:
        return [
            score if at != 1 else Score(None, Verdict.INFRA)
            for at, score in enumerate(scorer.score(pairs))
        ]

    first, second, third = asyncio.run(
        Participants(Agents(turns=2)).play(
            [row()] * 3, policy(tokenizer, [RIGHT] * 3), Executor(scorer), loses_the_second
        )
    )
    assert first
    assert third
    assert second is None


class Loses:
    """A sandbox without verdicts."""

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> list[Report]:
        return [Report(job.job_id, Verdict.INFRA, ()) for job in jobs]

    def close(self) -> None: ...


@pytest.mark.parametrize("loses", [False, True], ids=["closed", "gives no verdict"])
def test_a_broken_sandbox_is_replaced_during_a_conversation(tokenizer: Any, loses: bool) -> None:
    scorer = Scorer(RewardConfig(), SandboxConfig(workers=1))
    scorer.sandbox.close()
    if loses:
        scorer.__dict__["_sandbox"] = Loses()
    [conversation] = play(scorer, tokenizer, [WRONG, RIGHT], Agents(turns=2))
    scorer.sandbox.close()
    assert conversation
    assert conversation.messages == 4
    assert conversation.score.solved


def test_a_prompt_without_a_program_is_refused_for_conversations() -> None:
    truth = question_truth(Question("q/1", "How many?", "math", ("3",)))
    with pytest.raises(ValueError, match=r"q/1.*agents\.turns to 1"):
        request_of({"raw_prompt": [], "reward_model": {"ground_truth": truth}})


@dataclass
class Follows:
    """A generator that starts wrong and then follows the comment, or writes `alone` without one."""

    alone: str
    append_context: list[str] = field(default_factory=list)

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
        return [self._one(conversation.messages) for conversation in conversations]

    def _one(self, messages: list[dict[str, str]]) -> str:
        self.append_context.append(last := messages[-1]["content"])
        if len(messages) == 1:
            return WRONG
        return (
            RIGHT
            if "Review: Double" in last
            else SQUARE
            if "Review: Square" in last
            else self.alone
        )


@pytest.mark.parametrize(
    ("alone", "rewards"), [(WRONG, [1, 0, 0]), (RIGHT, [0, -1, 0])], ids=["helpless", "able"]
)
def test_a_comment_is_rewarded_by_its_effect_on_the_fix(
    scorer: Scorer, tokenizer: Any, alone: str, rewards: list[int]
) -> None:
    generator = Follows(alone)
    words = ["Double it.", "Square it.", "Hm."]
    played = asyncio.run(
        reviewer_rollouts(
            [row()] * 3, policy(tokenizer, words, 100), generator, Executor(scorer), scorer.score
        )
    )
    values = [one.reward if one else None for one in played]
    assert [value and value / abs(value) for value in values] == rewards
    assert (
        len(generator.append_context) == 1 + 1 + 3
    )  # one first program and one control for three comments
    assert len({tuple(one.stream.prompt) for one in played if one}) == 1
    assert all(set(one.stream.mask) == {1} for one in played if one)


@dataclass
class Goes:
    """An endpoint that fixes any program, but raises `error` where the prompt contains `fails`."""

    fails: str
    error: type[NoReply] = NoReply
    url: str = "http://there"

    def ask(self, question: dict[str, Any]) -> Reply:
        last = question["messages"][-1]["content"]
        if len(question["messages"]) > 1 and self.fails in last:
            raise self.error("no whole reply")
        return Reply(WRONG if len(question["messages"]) == 1 else RIGHT)


@pytest.mark.parametrize(
    ("fails", "error", "rewards"),
    [
        ("Review: Double", NoReply, [None, 0]),
        ("This one fails", NoReply, [None, None]),
        ("Review: Double", ContextTooLong, [-1, 0]),
    ],
    ids=["a fix", "the control", "no room for a fix"],
)
def test_a_comment_is_not_rewarded_when_the_endpoint_gives_no_reply(
    scorer: Scorer, tokenizer: Any, fails: str, error: type[NoReply], rewards: list[int | None]
) -> None:
    generator = EndpointWriter(cast(Endpoint, Goes(fails, error)), "m", 100, lenient=True)
    words = ["Double it.", "Hm."]
    played = asyncio.run(
        reviewer_rollouts(
            [row()] * 2, policy(tokenizer, words, 100), generator, Executor(scorer), scorer.score
        )
    )
    values = [one.reward if one else None for one in played]
    assert [value and value / abs(value) for value in values] == rewards


def test_a_comment_without_both_verdicts_has_no_reward() -> None:
    lost, right = Score(None, Verdict.INFRA), Score(1.0, Verdict.AC)
    assert comment_reward(lost, right) is None
    assert comment_reward(right, lost) is None
    assert comment_reward(Score(-1.0, Verdict.WA), right) == 1.0


def test_a_frozen_model_replies_independently_of_its_batch(tmp_path: Path) -> None:
    from verl_jobs.sft.tiny_model import TinyModel, make

    make(TinyModel(hidden=32, layers=1, heads=2, positions=128), [RIGHT], tmp_path)
    talks = [
        Conversation(DOUBLE, [{"role": "user", "content": "x" * count}]) for count in (3, 9, 30)
    ]
    too_long = Conversation(DOUBLE, [{"role": "user", "content": "x" * 500}])
    for temperature in (0.0, 1.0):
        writer = FrozenWriter(tmp_path, 12, temperature)
        together = asyncio.run(writer.write([*talks, too_long]))
        assert together == [*(asyncio.run(writer.write([talk]))[0] for talk in talks), None]


@pytest.mark.parametrize(
    ("training", "error"),
    [
        ({"agents": {"trains": "reviewer"}}, r"agents\.generator"),
        (
            {"agents": {"trains": "reviewer", "generator": "m", "reviewer": "self"}},
            r"agents\.reviewer",
        ),
        ({"agents": {"reviewer": "self"}}, r"agents\.turns of 2"),
        (
            {"agents": {"turns": 3, "tokens": 150}, "answer_tokens": 100},
            r"agents\.tokens .* 200 .* 100 tokens.* 150",
        ),
    ],
)
def test_impossible_combinations_of_participants_are_refused(
    training: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValidationError, match=error):
        Training.model_validate(training)


@pytest.mark.slow  # importing verl takes longer than all of this
def test_verl_learns_only_from_tokens_of_the_policy(scorer: Scorer, tokenizer: Any) -> None:
    """Use verl's fields and advantages on conversations of different lengths."""
    import numpy as np
    import torch
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    from verl_jobs.agents.loop import output_of
    from verl_jobs.cpu.batched import fields_of

    training = Training(agents=Agents(turns=3, shaping=0.5), answer_tokens=100)
    words = [WRONG, SQUARE, "no python", "also none", RIGHT]
    played = play(scorer, tokenizer, words, training.agents, rows=2)
    rollouts = [one for one in played if one]
    fields = [fields_of({"uid": "0"}, output_of(one, training, 100)) for one in rollouts]
    width = max(len(one["responses"]) for one in fields)
    pad = partial(torch.nn.functional.pad)
    mask = torch.stack(
        [pad(one["response_mask"], (0, width - len(one["response_mask"]))) for one in fields]
    )
    rewards = torch.stack(
        [pad(one["rm_scores"], (0, width - len(one["rm_scores"]))) for one in fields]
    )
    advantages, _ = compute_grpo_outcome_advantage(
        rewards, mask.float(), np.array(["0"] * len(fields))
    )
    assert len(fields) == 2
    assert (mask == 0).any()
    assert advantages[mask == 0].abs().sum() == 0
    assert advantages[mask == 1].abs().min() > 0
    for one, field_ in zip(rollouts, fields, strict=True):
        assert torch.equal(field_["loss_mask"], torch.tensor(one.stream.mask))
        assert field_["rm_scores"].sum().item() == pytest.approx(one.reward)
        assert torch.equal(field_["input_ids"], torch.tensor(one.stream.all))


@pytest.mark.slow
def test_verl_agent_loop_runs_one_conversation_at_a_time(tmp_path: Path) -> None:
    """Engines with their own batching: verl's config, dataset and output with the CPU engine."""
    from verl_jobs.agents.loop import ConversationLoop
    from verl_jobs.plugins.dry_rollouts import RecordingClient, _run_loop
    from verl_jobs.plugins.tiny_training import TinyTraining

    tiny_training = TinyTraining(
        Training(agents=Agents(turns=2, tokens=220), answer_tokens=24, prompt_tokens=400), tmp_path
    )
    tiny_training.__dict__["problems"] = [
        replace(problem, visible_tests=1) for problem in tiny_training.problems
    ]
    engine = RecordingClient(tiny_training)
    output = asyncio.run(_run_loop(ConversationLoop, tiny_training, engine))
    own = [
        token for token, one in zip(output.response_ids, output.response_mask, strict=True) if one
    ]
    assert own == engine.written
    assert engine.calls == 2
    assert output.num_turns == 4
    assert 0 in output.response_mask
    assert output.response_mask[-1] == 1
    assert len(output.response_logprobs) == len(output.response_ids) <= 220
    assert (
        output.reward_score == output.extra_fields["reward_extra_info"]["score"] == -1.0
    )  # an untrained model
