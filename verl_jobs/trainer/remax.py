"""ReMax for verl's v1 trainer: a greedy completion's reward is the baseline of the sampled ones.

Li et al. 2023, arXiv:2310.10505, algorithm 1. verl 0.9.1 has the estimator, but only its deprecated
trainer makes the greedy rollouts. Here each prompt gets one more session, and session 0 is greedy
(verl_jobs/trainer/greedy.py, verl_jobs/cpu/batched.py). The replay buffer removes it from the batch
and stores its reward here, in the trainer's process. The estimator looks it up by the prompt's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from verl.trainer.ppo.core_algos import compute_remax_outcome_advantage, register_adv_est

from verl_jobs.config.algorithms import REMAX

GREEDY = 0  # session id
_baselines: dict[str, float] = {}


def store_baselines(rewards: Mapping[str, float]) -> None:
    """Store the greedy completions' rewards of the coming step, by prompt.

    Forget the previous step's.
    """
    _baselines.clear()
    _baselines.update(rewards)


@register_adv_est(REMAX)  # type: ignore[untyped-decorator]  # verl has no types
def greedy_baseline(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any,
    config: Any = None,
    **_: Any,
) -> Any:
    """Return verl's ReMax advantages and returns with the stored baselines.

    Both are (completions, tokens). token_level_rewards, response_mask: (completions, tokens);
    index: each completion's prompt. Raises KeyError for a completion whose prompt has no baseline.
    A row with an empty mask is padding and needs none.
    """
    padding = response_mask.sum(dim=-1) == 0
    values = [
        0.0 if padded else _baselines[prompt]
        for prompt, padded in zip(index, padding.tolist(), strict=True)
    ]
    baselines = torch.tensor(
        values, dtype=token_level_rewards.dtype, device=token_level_rewards.device
    )
    return compute_remax_outcome_advantage(token_level_rewards, baselines, response_mask, config)
