"""The temperature schedule of the rollouts, in the engine and in the trainer."""

from __future__ import annotations

import pytest

from tests.verl_jobs.real_trainings import lines_of
from verl_jobs.config.training import Training


def test_the_temperature_is_constant_by_default() -> None:
    assert {Training(temperature=0.9).temperature_at(step) for step in range(1, 21)} == {0.9}


def test_the_temperature_falls_linearly_to_the_last_step() -> None:
    training = Training(steps=5, temperature=1.2, final_temperature=0.8)
    assert [round(training.temperature_at(step), 6) for step in range(1, 6)] == [
        1.2,
        1.1,
        1.0,
        0.9,
        0.8,
    ]


def test_a_training_of_one_step_has_one_temperature() -> None:
    assert Training(steps=1, save_every=1, final_temperature=0.5).temperature_at(1) == 1.0


@pytest.mark.parametrize(
    ("changes", "manager"),
    [
        ({}, ""),
        ({"final_temperature": 0.7}, "ScheduledManager"),
        ({"final_temperature": 0.7, "algorithm": "remax"}, "GreedyFirstManager"),
    ],
)
def test_verl_agent_loops_follow_the_temperature_schedule(
    changes: dict[str, object], manager: str
) -> None:
    lines = [
        line
        for line in lines_of(Training.model_validate({"engine": "vllm"} | changes))
        if "agent_loop_manager_class" in line
    ]
    assert [line.rpartition(".")[2] for line in lines] == ([manager] if manager else [])


@pytest.mark.slow  # importing verl takes longer than all of this
def test_the_trainer_scales_logits_by_the_step_temperature() -> None:
    from types import SimpleNamespace

    from omegaconf import OmegaConf

    from verl_jobs.trainer.replay_buffer import TEMPERATURE, WatchedReplayBuffer

    buffer = WatchedReplayBuffer.__new__(WatchedReplayBuffer)
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": {"temperature": 1.2}}})
    buffer.trainer = SimpleNamespace(config=config)
    training = Training(steps=5, temperature=1.2, final_temperature=0.8)
    assert buffer._set_temperature(training, 3) == {TEMPERATURE: pytest.approx(1.0)}
    assert config.actor_rollout_ref.rollout.temperature == pytest.approx(1.0)
    assert buffer._set_temperature(Training(), 3) == {}
