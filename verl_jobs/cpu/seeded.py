"""Reproducible initialization of new weights: a critic's value head and adapters.

verl seeds these only with `full_determinism`, which also makes every kernel slow. The plugin
imports this module in every process of a run.
"""

from __future__ import annotations

from typing import Any

import torch
from verl.workers.engine.fsdp import transformer_impl

_build = transformer_impl.FSDPEngine._build_module


def _build_module(self: Any) -> Any:
    torch.manual_seed(self.engine_config.seed)
    return _build(self)


transformer_impl.FSDPEngine._build_module = _build_module
