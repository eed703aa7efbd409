"""User-defined policy losses and advantage estimators in verl's registries, under their references.

References: verl_jobs/config/references.py. verl imports this module in each process that looks one
up, because `actor_rollout_ref.model.external_lib` names it. A reference is loaded when it is looked
up, so a process needs no earlier knowledge of the run.
"""

from __future__ import annotations

from typing import Any

from verl_jobs.adapter.versions import adapter
from verl_jobs.config.references import is_reference, load


class AlgorithmRegistry(dict[str, Any]):
    """verl's own entries; a name that is a reference is loaded on access."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or is_reference(name)

    def __missing__(self, name: str) -> Any:
        if not is_reference(name):
            raise KeyError(name)
        self[name] = load(name)
        return self[name]


adapter().wrap_registries(AlgorithmRegistry)
