"""The old name of `verl_jobs.trainer.reward_manager`, for plug-ins of the version before."""

import warnings

from verl_jobs.trainer.reward_manager import SandboxRewardManager, compute_score

__all__ = ["SandboxRewardManager", "compute_score"]

warnings.warn(
    "verl_jobs.reward is verl_jobs.trainer.reward_manager now; the old name ends with the next "
    "version",
    FutureWarning,
    stacklevel=2,
)
