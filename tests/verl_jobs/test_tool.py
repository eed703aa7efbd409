"""The Python tool in conversations: real sandbox, scripted policy, exact tokens and masks."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from problems.prompt import prompt_text
from problems.schema import Problem
from rewards.config import RewardConfig
from rewards.scorer import Scorer
from sandbox.protocol import Limits
from verl_jobs.agents.conversation import Conversation, begin
from verl_jobs.agents.corrections import tool_uses
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.participants import Participants
from verl_jobs.agents.play import NoReviewer, converse
from verl_jobs.agents.rollout import Rollout, RolloutRequest
from verl_jobs.agents.stream import PolicyWriter, Template, stream_of
from verl_jobs.agents.tool import PythonTool, called
from verl_jobs.config.agents import Agents
from verl_jobs.samples import SampledTokens

RIGHT = "def solve(x):\n    return 2 * x"
DOUBLE = Problem(
    problem_id="t/double",
    source="t",
    statement="Write solve(x): twice x.",
    style="call",
    entry_point="solve",
    tests=tuple({"args": [x], "expected": 2 * x} for x in (2, 3, 7)),
    solutions=(RIGHT,),
    limits=Limits(wall_s=9.0, cpu_s=2.0),
)
# as Qwen's template describes tools and their results
HERMES = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }} <tool_call> </tool_call><|im_end|>\n"
    "{% endif %}{% for m in messages %}<|im_start|>"
    "{% if m['role'] == 'tool' %}user\n<tool_response>\n{{ m['content'] }}\n</tool_response>"
    "{% else %}{{ m['role'] + '\n' + m['content'] }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def call(program: str) -> str:
    return f"Let me see.\n```python run\n{program}\n```"


def hermes(program: str, name: str = "python") -> str:
    arguments = {"name": name, "arguments": {"code": program}}
    return f"<tool_call>\n{json.dumps(arguments)}\n</tool_call>"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from verl_jobs.sft.tiny_model import train_tokenizer

    return train_tokenizer([RIGHT, "You can run Python twice more. Output: <|im_end|>"] * 4, 330)


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    scorer = Scorer(RewardConfig())
    yield scorer
    scorer.sandbox.close()


class Policy:
    """A policy that samples the tokens of given texts, and records what it was asked and wrote."""

    def __init__(self, tokenizer: Any, texts: Sequence[str]) -> None:
        self.tokenizer, self.texts = tokenizer, list(texts)
        self.asked, self.wrote = list[list[int]](), list[list[int]]()

    async def ask(self, prompts: list[list[int]], limits: list[int]) -> list[SampledTokens]:
        written = []
        for ids, limit in zip(prompts, limits, strict=True):
            tokens = self.tokenizer.encode(self.texts.pop(0), add_special_tokens=False)
            tokens = [*tokens, self.tokenizer.eos_token_id][:limit]
            self.asked.append(ids)
            self.wrote.append(tokens)
            written.append(SampledTokens(tokens, [-0.5] * len(tokens), ""))
        return written


def play(
    scorer: Scorer, tokenizer: Any, texts: Sequence[str], calls: int = 2, room: int = 900
) -> tuple[Rollout | None, Policy]:
    policy = Policy(tokenizer, texts)
    writer = PolicyWriter(Template(tokenizer, tool=True), policy.ask, 300, room)
    request = RolloutRequest(
        [{"role": "user", "content": prompt_text(DOUBLE)}], _truth(DOUBLE), DOUBLE
    )
    agents = Agents(tool_calls=calls)
    playing = Participants(agents).play([request], writer, Executor(scorer), scorer.score)
    [rollout] = asyncio.run(playing)
    return rollout, policy


def _truth(problem: Problem) -> str:
    from problems.dataset.rl_parquet import ground_truth

    return ground_truth(problem)


def output(scorer: Scorer, program: str, bytes_: int = 200) -> str:
    """Return the message after a call of this program."""
    conversation = begin(DOUBLE, [{"role": "user", "content": "?"}])
    conversation.messages.append({"role": "assistant", "content": call(program)})
    assert PythonTool(scorer, 3, bytes_).run([conversation]) == [conversation]
    return conversation.messages[-1]["content"]


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (call("print(1)"), "print(1)\n"),
        (call("print(1)") + "\nOutput:\n7\n" + call("print(2)"), "print(1)\n"),
        ("```python run\nprint(1)", "print(1)"),
        ("```python\nprint(1)\n```", None),
        ("<think>\n" + call("print(1)"), None),
        (hermes("print('```')"), "print('```')"),
        (hermes("print(1)", "bash"), ""),
        ("<tool_call>{", ""),
        ('<tool_call>{"name": "python", "arguments": [1]}</tool_call>', ""),
        (RIGHT, None),
    ],
)
def test_the_first_marked_block_is_the_call(text: str, program: str | None) -> None:
    assert called(text) == program


def test_a_result_has_output_and_traceback(scorer: Scorer) -> None:
    text = output(scorer, "import sys\nprint('one')\nprint('two', file=sys.stderr)\n1 / 0")
    assert {"one", "two"} == set(text.splitlines()[1:3])
    assert text.splitlines()[3].startswith("Traceback")
    assert "line 4" in text
    assert "ZeroDivisionError: division by zero" in text
    assert text.endswith("You can run Python twice more.")


@pytest.mark.parametrize(
    ("program", "reply"),
    [
        ("x = (", "It is no Python:\n"),
        ("x = 1", "Nothing was printed."),
        ("print(open('/etc/shadow').read())", "Error: "),
        ("while True: print('flood' * 999)", "It prints too much."),
        ("x = 'a' * 10**9", "It takes too much memory."),
        ("import os, signal\nos.kill(0, signal.SIGKILL)", "killed by signal 9"),
        ("import os\nos.write(1, bytes(range(256)))", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_hostile_call_gets_a_short_result(scorer: Scorer, program: str, reply: str) -> None:
    text = output(scorer, program)
    assert reply in text
    assert len(text) < 400
    assert "\x1b" not in text


def test_a_long_output_keeps_its_beginning_and_its_end(scorer: Scorer) -> None:
    text = output(scorer, "print('begin' + 'x' * 5000)\nraise ValueError('at the end')", 120)
    assert text.startswith("Output:\nbeginxx")
    assert "ValueError: at the end" in text
    assert len(text) < 200


def test_a_call_never_sees_a_test(scorer: Scorer) -> None:
    program = "import gc, os, sys\nprint([o for o in gc.get_objects() if 'solve' in repr(o)[:999]])"
    text = output(scorer, f"{program}\nprint(os.listdir('.'), sys.argv, os.environ)", 10**6)
    assert "expected" not in text
    assert "2 * x" not in text


LETTERS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)


@given(parts=st.lists(LETTERS | st.sampled_from(["<|im_end|>", "<|im_start|>", "<|", "\n"])))
def test_a_result_never_has_special_tokens(tokenizer: Any, parts: list[str]) -> None:
    template, text = Template(tokenizer), "".join(parts)
    special = set(tokenizer.all_special_ids) | set(tokenizer.get_added_vocab().values())
    assert len(special) >= 2
    assert not special & set(template.plain_tokens(text))
    between = [
        template.tokens_between([{"role": "user", "content": content}], 0)
        for content in (text, "plain")
    ]
    counts = [sum(token in special for token in tokens) for tokens in between]
    assert counts[0] == counts[1]


MESSAGES = st.sampled_from(
    [
        call("print(6 * 7)"),
        call("print('<|im_end|>\\n<|im_start|>assistant\\n' * 3)"),
        call("1 / 0"),
        "```python run\nprint(1",
        hermes("print(3)"),
        RIGHT,
        "Hm.",
    ]
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture],
)
@given(
    texts=st.lists(MESSAGES, min_size=5, max_size=5),
    calls=st.integers(1, 4),
    room=st.integers(60, 900),
    native=st.booleans(),
)
def test_tokens_and_mask_are_exactly_those_sampled(
    scorer: Scorer, tokenizer: Any, texts: list[str], calls: int, room: int, native: bool
) -> None:
    if native:
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.chat_template = HERMES
    rollout, policy = play(scorer, tokenizer, texts, calls, room)
    assert rollout  # a policy that only calls is judged too
    stream = rollout.stream
    own = [token for token, one in zip(stream.tokens, stream.mask, strict=True) if one]
    assert own == [token for wrote in policy.wrote for token in wrote]
    assert len(policy.wrote) <= calls + 1
    assert len(stream.tokens) == len(stream.log_probs) <= room
    for asked, wrote in zip(policy.asked, policy.wrote, strict=True):
        assert stream.all[: len(asked) + len(wrote)] == asked + wrote
    assert set(rollout.rewards) == {len(stream.tokens) - 1}
    assert stream.mask[-1] == 1


def test_the_answer_after_a_call_is_judged_on_all_tests(scorer: Scorer, tokenizer: Any) -> None:
    rollout, _ = play(scorer, tokenizer, [call("print(2 * 3)"), RIGHT])
    assert rollout
    assert rollout.score.solved
    assert "[user]\nOutput:\n6\nYou can run Python once more." in rollout.text


def test_after_the_last_call_any_message_is_the_answer(scorer: Scorer, tokenizer: Any) -> None:
    rollout, policy = play(scorer, tokenizer, [call("print(1)"), call("print(2)"), RIGHT], 1)
    assert rollout
    assert policy.texts == [RIGHT]
    assert not rollout.score.solved
    assert "\nNow answer." in rollout.text


def test_a_call_after_which_nothing_fits_is_the_answer(scorer: Scorer, tokenizer: Any) -> None:
    length = len(tokenizer.encode(call(RIGHT), add_special_tokens=False))
    rollout, policy = play(scorer, tokenizer, [call(RIGHT), RIGHT], room=length + 20)
    assert rollout
    assert policy.texts == [RIGHT]
    assert rollout.score.solved  # the program in the call


def test_a_template_with_tools_gets_the_schema_and_results_as_tool(
    scorer: Scorer, tokenizer: Any
) -> None:
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.chat_template = HERMES
    rollout, policy = play(scorer, tokenizer, [hermes("print('</tool_response>')"), RIGHT])
    assert rollout
    assert rollout.score.solved
    prompt, second = map(tokenizer.decode, policy.asked)
    assert '"name": "python"' in prompt
    assert "```python run" not in prompt
    assert second.count("<tool_response>\nOutput:\n") == 1


def test_a_call_that_the_sandbox_loses_is_no_sample(scorer: Scorer) -> None:
    problem = replace(DOUBLE, extra={"packages": ["absent"]})
    lost = begin(problem, [{"role": "user", "content": "?"}])

    class Calls:
        async def write(self, conversations: Sequence[Conversation]) -> list[str | None]:
            return [call("print(1)")] * len(conversations)

    tool = PythonTool(scorer, 3, 200)
    asyncio.run(converse([lost], Calls(), Executor(scorer), NoReviewer(), 1, tool=tool))
    assert (lost.ended, lost.attempts) == ("the sandbox failed", [])
    with pytest.raises(ValueError, match="no policy"):
        stream_of(lost)


def test_a_demonstration_of_the_tool_shows_its_real_output(scorer: Scorer) -> None:
    problem = replace(DOUBLE, visible_tests=1)
    call_row, answer_row = tool_uses([problem, DOUBLE], PythonTool(scorer, 1, 200))
    assert called(call_row[1]) == f"{RIGHT}\nprint(solve(2))\n"
    assert answer_row[0] == [
        *call_row[0],
        {"role": "assistant", "content": call_row[1]},
        {"role": "user", "content": "Output:\n4\nNow answer."},
    ]
    assert answer_row[1] == RIGHT
