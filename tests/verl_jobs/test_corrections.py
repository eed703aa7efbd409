"""What keeps a step in bounds: rewards on another scale, a KL that is held to its target, weights between engine and trainer that are cut."""

from __future__ import annotations

import math
from statistics import pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_jobs.config.overrides import overrides
from verl_jobs.config.training import Training
from verl_jobs.trainer.rescaled import rescaled

REWARDS = st.lists(
    st.integers(-200, 100).map(lambda hundredths: hundredths / 100), min_size=2, max_size=20
)


@given(REWARDS)
def test_normalised_rewards_have_mean_zero_and_deviation_one_and_keep_their_order(
    rewards: list[float],
) -> None:
    made = rescaled(rewards, normalised=True, clip=0.0)
    if pstdev(rewards) > 1e-6:
        assert pstdev(made) == pytest.approx(1.0) and sum(made) == pytest.approx(0.0, abs=1e-6)
        assert sorted(range(len(made)), key=lambda at: made[at]) == sorted(
            range(len(made)), key=lambda at: rewards[at]
        )


def test_equal_rewards_stay_as_they_are() -> None:
    assert rescaled([0.5, 0.5], normalised=True, clip=0.0) == [0.5, 0.5] and rescaled(
        [0.5], normalised=True, clip=0.0
    ) == [0.5]


@given(REWARDS, st.floats(0.1, 3))
def test_no_reward_is_beyond_the_clip_and_what_is_within_is_left_alone(
    rewards: list[float], clip: float
) -> None:
    made = rescaled(rewards, normalised=False, clip=clip)
    assert all(
        now == was if abs(was) <= clip else now == math.copysign(clip, was)
        for was, now in zip(rewards, made, strict=True)
    )


def told(**changes: Any) -> dict[str, str]:
    from pathlib import Path

    paths = {name: Path("x") for name in ("model", "train", "validation", "folder")}
    lines = overrides(Training(**changes), seed=1, loggers=[], name="t", **paths)
    return dict(line.lstrip("+").split("=", 1) for line in lines)


def test_the_replay_buffer_is_told_of_both() -> None:
    said = told(reward_normalised=True, reward_clip=3.0)["trainer.v1.sampler.sampler_kwargs"]
    assert "normalised:True" in said and "clip:3.0" in said
    assert "clip" not in told()["trainer.v1.sampler.sampler_kwargs"]


@pytest.mark.slow  # imports verl
@pytest.mark.parametrize(
    ("kl", "factor"), [(0.05, 1.02), (0.021, 1.005), (0.02, 1.0), (0.001, 0.98)]
)
def test_the_kl_coefficient_rises_above_its_target_and_falls_below(
    kl: float, factor: float
) -> None:
    """beta <- beta (1 + 0.1 clip(KL / target - 1, -0.2, 0.2)); Ziegler et al. 2019, arXiv:1909.08593, section 2.2."""
    from omegaconf import OmegaConf
    from verl.trainer.ppo.core_algos import get_kl_controller

    said = told(kl_coefficient=0.01, kl_in="reward", kl_target=0.02)
    numbers = {
        key: float(said[f"algorithm.kl_ctrl.{key}"]) for key in ("kl_coef", "target_kl", "horizon")
    }
    controller = get_kl_controller(
        OmegaConf.create({"type": said["algorithm.kl_ctrl.type"], **numbers})
    )
    controller.update(current_kl=kl, n_steps=Training().problems_per_step * Training().group_size)
    assert controller.value == pytest.approx(0.01 * factor)


@pytest.mark.slow  # imports verl
def test_weights_between_engine_and_trainer_are_their_ratio_cut_at_the_cap() -> None:
    """min(pi_trainer / pi_engine, C) a token, 0 outside the answer: truncated importance sampling (Ionides 2008; Yao et al. 2025)."""
    import torch
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_weights

    said = told(importance_cap=2.0)
    trainer, engine = [[-0.1, -2.0, -0.5]], [[-1.5, -1.0, -0.5]]
    ratio, mask = torch.tensor(trainer) - torch.tensor(engine), torch.tensor([[1.0, 1.0, 0.0]])
    weights, _ = compute_rollout_correction_weights(
        ratio, mask,
        rollout_is=said["algorithm.rollout_correction.rollout_is"], rollout_is_threshold=said["algorithm.rollout_correction.rollout_is_threshold"],
    )  # fmt: skip
    assert weights.tolist()[0] == pytest.approx([min(2.0, math.exp(1.4)), math.exp(-1.0), 0.0])
