"""Adaptive weight of the entropy in the loss: it keeps a policy from collapsing, and no more.

The weight c grows while the entropy is below the target, and shrinks above it, where it also does
not count. Skywork-OR1 (arXiv:2505.22312, section 3; SkyworkAI/Skywork-OR1 at 64e96af,
verl/trainer/ppo/core_algos.py, EntController; or1_scripts/train/7b_8k.sh). There the entropy is the
last step's; here it is that of the step's own batch, before the update.
"""

from __future__ import annotations

from typing import NamedTuple

from rewards.watch import PREFIX
from verl_jobs.config.training import MAX_ENTROPY

CHANGE = 1e-4  # of the weight in a step
WEIGHT = f"{PREFIX}/entropy_coefficient"  # the metric: what counts in this step's loss


class Entropy(NamedTuple):
    """The controller of the weight of the entropy in the loss.

    coefficient: the controller's weight c; target: entropy in nats a token.
    """

    coefficient: float
    target: float

    def after(self, entropy: float) -> Entropy:
        """Return the controller after a step whose batch has this entropy."""
        change = CHANGE if entropy < self.target else -CHANGE
        return self._replace(coefficient=min(max(self.coefficient + change, 0.0), MAX_ENTROPY))

    def weight(self, entropy: float) -> float:
        """Return the weight in the loss of a step whose batch has this entropy."""
        return self.coefficient if entropy < self.target else 0.0
