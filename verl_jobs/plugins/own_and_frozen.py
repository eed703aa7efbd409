"""Frozen layers and user-defined algorithms together: verl's `external_lib` takes only one module.

The key is `actor_rollout_ref.model.external_lib`.
"""

from verl_jobs.plugins import own_algorithms
from verl_jobs.trainer import freezing

__all__ = ["freezing", "own_algorithms"]
