"""Both at once for verl's `actor_rollout_ref.model.external_lib`, which takes one module: layers that stay, and a user's own algorithms."""

from verl_jobs.plugins import own_algorithms
from verl_jobs.trainer import freezing

__all__ = ["freezing", "own_algorithms"]
