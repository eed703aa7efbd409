"""verl's names of the metrics that Ratchet reads."""

from __future__ import annotations

FROM_START = (
    "actor/kl_loss",
    "actor/reward_kl_penalty",
)  # KL to the start policy, nats a token; there with a KL coefficient


OF_UPDATE = "actor/ppo_kl"  # KL of the update itself; 0 with one mini-batch a step


ENTROPY = "actor/entropy"
