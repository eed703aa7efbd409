"""Frozen layers for verl's FSDP engine, which has no such setting.

Loaded by `actor_rollout_ref.model.external_lib=verl_jobs.trainer.freezing`. verl imports this
module in every worker before it builds a model. The names are in the model's
`override_config.frozen`. `override_config` also has the key `model_config`, so that verl does not
write `frozen` into the checkpoint's own config (verl/workers/config/model.py, `__post_init__`).
"""

from __future__ import annotations

from typing import Any

from verl.workers.engine.fsdp import transformer_impl

from verl_jobs.frozen import freeze

_build = transformer_impl.FSDPEngine._build_module


def _build_module(self: Any) -> Any:
    module = _build(self)
    names = self.model_config.override_config.get("frozen") or ()
    if names:
        freeze(module, tuple(names))
    return module


transformer_impl.FSDPEngine._build_module = _build_module
