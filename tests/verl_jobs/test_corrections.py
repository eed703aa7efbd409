"""Rescaled rewards, the KL controller and truncated importance weights."""

from __future__ import annotations

import math
from statistics import pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.verl_jobs.real_trainings import lines_of
from verl_jobs.config.training import Training
from verl_jobs.trainer.rescaled import rescaled

REWARDS = st.lists(
    st.integers(-200, 100).map(lambda hundredths: hundredths / 100), min_size=2, max_size=20
)


@given(REWARDS)
def test_normalised_rewards_have_unit_deviation_and_keep_their_order(
    rewards: list[float],
) -> None:
    values = rescaled(rewards, normalised=True, clip=0.0)
    if pstdev(rewards) > 1e-6:
        assert pstdev(values) == pytest.approx(1.0)
        assert sum(values) == pytest.approx(0.0, abs=1e-6)
        assert sorted(range(len(values)), key=lambda at: values[at]) == sorted(
            range(len(values)), key=lambda at: rewards[at]
        )


def test_equal_rewards_are_not_changed() -> None:
    assert rescaled([0.5, 0.5], normalised=True, clip=0.0) == [0.5, 0.5]
    assert rescaled([0.5], normalised=True, clip=0.0) == [0.5]


@given(REWARDS, st.floats(0.1, 3))
def test_only_rewards_beyond_the_clip_are_clipped(rewards: list[float], clip: float) -> None:
    values = rescaled(rewards, normalised=False, clip=clip)
    assert all(
        now == was if abs(was) <= clip else now == math.copysign(clip, was)
        for was, now in zip(rewards, values, strict=True)
    )


def settings_of(**changes: Any) -> dict[str, str]:

    return dict(line.lstrip("+").split("=", 1) for line in lines_of(Training(**changes)))


def test_normalisation_and_clip_reach_the_replay_buffer() -> None:
    settings = settings_of(reward_normalised=True, reward_clip=3.0)[
        "trainer.v1.sampler.sampler_kwargs"
    ]
    assert "normalised:True" in settings
    assert "clip:3.0" in settings
    assert "clip" not in settings_of()["trainer.v1.sampler.sampler_kwargs"]


@pytest.mark.slow  # imports verl
@pytest.mark.parametrize(
    ("kl", "factor"), [(0.05, 1.02), (0.021, 1.005), (0.02, 1.0), (0.001, 0.98)]
)
def test_the_kl_coefficient_rises_above_its_target_and_falls_below(
    kl: float, factor: float
) -> None:
    """beta <- beta (1 + 0.1 clip(KL / target - 1, -0.2, 0.2)); arXiv:1909.08593, section 2.2."""
    from omegaconf import OmegaConf
    from verl.trainer.ppo.core_algos import get_kl_controller

    settings = settings_of(kl_coefficient=0.01, kl_in="reward", kl_target=0.02)
    numbers = {
        key: float(settings[f"algorithm.kl_ctrl.{key}"])
        for key in ("kl_coef", "target_kl", "horizon")
    }
    controller = get_kl_controller(
        OmegaConf.create({"type": settings["algorithm.kl_ctrl.type"], **numbers})
    )
    controller.update(current_kl=kl, n_steps=Training().problems_per_step * Training().group_size)
    assert controller.value == pytest.approx(0.01 * factor)


@pytest.mark.slow  # imports verl
def test_importance_weights_are_the_ratio_truncated_at_the_cap() -> None:
    """min(pi_trainer / pi_engine, C) per token, 0 outside the completion (Ionides 2008)."""
    import torch
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_weights

    settings = settings_of(importance_cap=2.0)
    trainer, engine = [[-0.1, -2.0, -0.5]], [[-1.5, -1.0, -0.5]]
    ratio, mask = torch.tensor(trainer) - torch.tensor(engine), torch.tensor([[1.0, 1.0, 0.0]])
    weights, _ = compute_rollout_correction_weights(
        ratio,
        mask,
        rollout_is=settings["algorithm.rollout_correction.rollout_is"],
        rollout_is_threshold=settings["algorithm.rollout_correction.rollout_is_threshold"],
    )
    assert weights.tolist()[0] == pytest.approx([min(2.0, math.exp(1.4)), math.exp(-1.0), 0.0])
