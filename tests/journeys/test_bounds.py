"""Limits on a training step (docs/explanation/training.md), in tiny runs of real verl on Ray.

Covered: the end of dynamic sampling, KL, temperature, importance weights and reward clipping.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.config.profile import Profile
from tests.journeys.test_examples import train_tiny
from verl_jobs.config.algorithms import MAX_DROPPED
from verl_jobs.config.training import Training
from verl_jobs.job import VALIDATION, metrics
from verl_jobs.samples import CUT
from verl_jobs.trainer.checkpoints import STATE
from verl_jobs.trainer.rescaled import RAW
from verl_jobs.trainer.truncated import MASKED

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]
TINY = {
    "steps": 2,
    "save_every": 1,
    "problems_per_step": 4,
    "group_size": 2,
    "entropy_coefficient": 0.05,
    "learning_rate": 0.01,
}


def steps(training: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Return verl's metrics of each step.

    The policy is untrained, so all rewards are equal; the entropy bonus changes its weights.
    """
    job = train_tiny(Training.model_validate(TINY | training), Profile().reward, folder)
    return [row for row in metrics(job.path) if row["step"] > 0]


def test_a_dapo_step_ends_without_a_mixed_group(tmp_path: Path) -> None:
    """The step also has KL in the loss, a falling temperature and capped importance weights."""
    from verl_jobs.trainer.replay_buffer import TEMPERATURE

    rows = steps(
        {
            "algorithm": "dapo",
            "kl_coefficient": 0.01,
            "temperature": 1.2,
            "final_temperature": 0.8,
            "importance_cap": 2.0,
        },
        tmp_path,
    )
    assert [row["step"] for row in rows] == [1, 2]
    # Equal samples in the same check as the last one are dropped too.
    least = MAX_DROPPED * 4
    assert all(least <= row["training/filter_groups/evicted_samples"] <= least + 8 for row in rows)
    assert [round(row[TEMPERATURE], 6) for row in rows] == [1.2, 0.8]
    assert rows[0]["actor/kl_loss"] == pytest.approx(0.0, abs=1e-6)
    assert rows[1]["actor/kl_loss"] > 0
    assert all(row["rollout_corr/rollout_is_mean"] == pytest.approx(1.0, abs=0.01) for row in rows)


def test_any_algorithm_may_sample_anew_and_mask_truncated_completions(tmp_path: Path) -> None:
    """Validation is sampled too, and one override of verl is passed through."""
    rows = steps(
        {
            "algorithm": "rloo",
            "clip_high": 0.28,
            "dynamic_sampling": True,
            "overlong": "mask",
            "weight_decay": 0.1,
            "validation": {"n": 2, "temperature": 0.7, "top_p": 0.9},
            "verl": ("actor_rollout_ref.actor.clip_ratio_c=10.0",),
        },
        tmp_path,
    )
    assert all(row["training/filter_groups/evicted_samples"] >= MAX_DROPPED * 4 for row in rows)
    masked, cut = ([row[name] for row in rows] for name in (MASKED, CUT))
    assert masked == [0.0 if share == 1 else share for share in cut]
    assert VALIDATION in rows[-1]
    assert any(0 < share < 1 for share in cut), cut


def test_the_kl_coefficient_is_controlled_and_rewards_are_clipped(tmp_path: Path) -> None:
    """The KL coefficient changes by 2 % a step; equal rewards have no deviation.

    The 2 % do not depend on the batch. See arXiv:1909.08593: K = 0.1, and the error is clipped to
    at most 0.2.
    """
    settings = {
        "kl_coefficient": 0.1,
        "kl_in": "reward",
        "kl_target": 1e-6,
        "reward_normalised": True,
        "reward_clip": 0.5,
    }
    rows = steps(settings, tmp_path)
    assert rows[0]["actor/reward_kl_penalty"] < 1e-6 < rows[1]["actor/reward_kl_penalty"]
    down, up = 1 - 0.1 * 0.2, 1 + 0.1 * 0.2
    assert [row["actor/reward_kl_penalty_coeff"] for row in rows] == pytest.approx(
        [0.1, 0.1 * down], rel=1e-9
    )
    state = json.loads((tmp_path / "saves" / "global_step_2" / STATE).read_text())
    assert state["kl_coefficient"] == pytest.approx(0.1 * down * up, rel=1e-9)
    assert all(row[RAW] == -1.0 and row["critic/score/mean"] == -0.5 for row in rows)
