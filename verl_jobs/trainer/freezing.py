"""Frozen layers for verl's FSDP engine, which has no such setting.

Loaded by `actor_rollout_ref.model.external_lib=verl_jobs.trainer.freezing`. verl imports this
module in every worker before it builds a model. The names are in the model's
`override_config.frozen`. `override_config` also has the key `model_config`, so that verl does not
write `frozen` into the checkpoint's own config (verl/workers/config/model.py, `__post_init__`).
"""

from __future__ import annotations

from typing import Any

from verl_jobs.adapter.versions import adapter
from verl_jobs.frozen import freeze


def _freeze(engine: Any, module: Any) -> None:
    if names := engine.model_config.override_config.get("frozen") or ():
        freeze(module, tuple(names))


adapter().around_build(after=_freeze)
