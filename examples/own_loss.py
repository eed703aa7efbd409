"""REINFORCE with truncated importance weights: verl's arguments and aggregation, one own metric."""

from __future__ import annotations

from typing import Any

import torch
from verl.trainer.ppo.core_algos import agg_loss

HIGHEST = 1.0  # the highest importance weight of a token


def loss(  # noqa: PLR0917 (verl's arguments)
    old_log_prob: torch.Tensor,
    log_prob: torch.Tensor,
    advantages: torch.Tensor,
    response_mask: torch.Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: torch.Tensor | None = None,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the loss -min(rho, HIGHEST) A log p and its metric.

    rho is the ratio of new to old probability, without a gradient. Tensors are (completions,
    tokens).
    """
    ratio = (log_prob - old_log_prob).detach().exp()
    losses = -ratio.clamp(max=HIGHEST) * advantages * log_prob
    value = agg_loss(
        loss_mat=losses,
        loss_mask=response_mask,
        loss_agg_mode=loss_agg_mode,
        **config.global_batch_info,
    )
    return value, {"actor/cut_weights": (ratio[response_mask] > HIGHEST).float().mean().item()}
