"""verl's names of the metrics that Ratchet reads."""

from __future__ import annotations

# KL to the start policy, nats a token; logged if there is a KL coefficient
FROM_START = ("actor/kl_loss", "actor/reward_kl_penalty")
OF_UPDATE = "actor/ppo_kl"  # KL of the update itself; 0 with one mini-batch a step
ENTROPY = "actor/entropy"
