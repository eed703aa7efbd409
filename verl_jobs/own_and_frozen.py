"""Both at once for verl's `actor_rollout_ref.model.external_lib`, which takes one module: layers that stay, and a user's own algorithms."""

from verl_jobs import freezing, own_algorithms

__all__ = ["freezing", "own_algorithms"]
