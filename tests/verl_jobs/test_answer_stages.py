"""A length curriculum: which maximum each step has, and what follows it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.verl_jobs.real_trainings import lines_of
from tests.verl_jobs.test_job import a_job
from verl_jobs.config.agents import Agents
from verl_jobs.config.answer_stages import AnswerStage
from verl_jobs.config.training import Training

STAGES = ({"until": 2, "tokens": 10}, {"until": 4, "tokens": 20})


def staged(**changes: Any) -> Training:
    return Training.model_validate(
        {"steps": 10, "answer_tokens": 40, "answer_stages": STAGES} | changes
    )


def test_each_step_has_the_maximum_of_its_stage() -> None:
    training = staged()
    assert [training.answer_tokens_at(step) for step in range(1, 8)] == [10, 10, 20, 20, 40, 40, 40]


def test_without_stages_the_maximum_is_constant() -> None:
    assert {Training().answer_tokens_at(step) for step in range(1, 21)} == {112}


@given(
    st.sets(st.integers(1, 99), min_size=1, max_size=5),
    st.sets(st.integers(1, 99), min_size=5, max_size=5),
)
def test_the_maximum_never_falls_and_ends_at_answer_tokens(
    until: set[int], tokens: set[int]
) -> None:
    stages = tuple(
        AnswerStage(until=step, tokens=most)
        for step, most in zip(sorted(until), sorted(tokens), strict=False)
    )
    training = staged(steps=100, answer_tokens=100, answer_stages=stages)
    limits = [training.answer_tokens_at(step) for step in range(1, 101)]
    assert limits == sorted(limits)
    assert limits[-1] == 100
    assert set(limits) == {100, *(stage.tokens for stage in stages)}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"steps": 5, "save_every": 5, "answer_stages": [{"until": 5, "tokens": 1}]},
         r"answer_stages\[0\]\.until must be above 0 and below steps \(5\), got 5"),
        ({"answer_stages": STAGES[::-1]}, r"answer_stages\[1\]\.until must be above 4 .* got 2"),
        ({"answer_tokens": 20},
         r"answer_stages\[1\]\.tokens must be above 10 and below answer_tokens \(20\), got 20"),
        ({"answer_stages": [STAGES[1], {"until": 6, "tokens": 10}]},
         r"answer_stages\[1\]\.tokens must be above 20"),
    ],
)  # fmt: skip
def test_stages_that_do_not_grow_are_refused_with_the_bounds(
    changes: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValidationError, match=error):
        staged(**changes)


def test_memory_batches_and_engine_are_planned_for_the_longest() -> None:
    assert staged().response_tokens == 40
    assert "data.max_response_length=40" in lines_of(staged())


def test_a_conversation_keeps_its_own_maximum() -> None:
    training = staged(agents=Agents(turns=2, tokens=100))
    assert {training.response_tokens_at(step) for step in range(1, 11)} == {100}


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_agent_loops_of_verl_get_the_step_maximum(engine: str) -> None:
    lines = lines_of(staged(engine=engine))
    manager = "+actor_rollout_ref.rollout.agent.agent_loop_manager_class"
    assert f"{manager}=verl_jobs.trainer.greedy.ScheduledManager" in lines


@pytest.mark.slow  # importing verl takes longer than all of this
@pytest.mark.parametrize(
    ("training", "sampling"),
    [
        (staged(), [{"temperature": 1.0, "max_tokens": limit} for limit in (10, 20, 40)]),
        (Training(), [{"temperature": 1.0}] * 3),
    ],
)
def test_the_engine_is_asked_for_the_step_maximum(
    training: Training, sampling: list[dict[str, float]]
) -> None:
    from verl_jobs.trainer.greedy import ScheduledWorker

    worker = ScheduledWorker.__new__(ScheduledWorker)
    worker.training = training
    assert [worker.sampling_at(step) for step in (1, 4, 5)] == sampling


@pytest.mark.slow  # importing verl takes longer than all of this
@pytest.mark.parametrize(("source", "penalty"), [("mine", -0.5), ("validation", 0.0)])
def test_the_length_penalty_is_that_of_the_stage_but_not_in_validation(
    source: str, penalty: float, tmp_path: Path
) -> None:
    """18 of 20 tokens are in the middle of the last fifth; validation may have 40."""
    import numpy as np
    import torch
    from tensordict import TensorDict
    from verl import DataProto

    from verl_jobs.trainer.reward_manager import SandboxRewardManager, scorer_of

    truth = {"question_id": "q", "task": "qa", "answers": ["Danube"], "statement": "Which river?"}
    fields = {"data_source": source, "reward_model": {"ground_truth": json.dumps(truth)},
              "global_steps": 3}  # fmt: skip
    tensors = {"responses": torch.ones(1, 18).long(), "attention_mask": torch.ones(1, 30).long()}
    completion = DataProto(
        batch=TensorDict(tensors, batch_size=1),
        non_tensor_batch={key: np.array([value], dtype=object) for key, value in fields.items()},
    )
    manager = SandboxRewardManager.__new__(SandboxRewardManager)
    manager.tokenizer = SimpleNamespace(decode=lambda *_, **__: "Answer: Danube")
    manager.job = a_job(tmp_path, training=staged(overlong="penalty"))
    manager.scorer = scorer_of(manager.job)
    info = manager._score(completion)["reward_extra_info"]
    assert info["score"] - sum(json.loads(info["trace"]).values()) == pytest.approx(penalty)
