"""Every module of ours that an override names exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.verl_jobs.real_trainings import lines_of
from verl_jobs.config.training import Training

OWN = "tests/verl_jobs/test_override_targets.py:own"
PLUGINS = dict.fromkeys(("loss", "advantage", "dataset", "reward_manager", "agent_loop"), OWN)
VARIANTS = {
    "cpu": {},
    "gpu": {"engine": "vllm"},
    "frozen": {"frozen": ("model.embed*",)},
    "own parts": {"plugins": PLUGINS},
    "own parts, frozen": {"plugins": PLUGINS, "frozen": ("model.embed*",)},
    "own dataset, curriculum": {
        "plugins": {"dataset": OWN},
        "curriculum": {"schedule": "window"},
    },
    "conversations": {"agents": {"turns": 2}},
    "remax": {"algorithm": "remax"},
}


def own() -> None:
    """Stand for a plugin; only its reference is used."""


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_every_module_in_the_overrides_exists(changes: dict[str, object]) -> None:
    training = Training.model_validate(changes)
    text = "\n".join(lines_of(training))
    named = set(re.findall(r"\bverl_jobs(?:\.\w+)+", text))
    assert named
    for name in named:
        file = Path(importlib.import_module("verl_jobs").__path__[0])
        parts = name.split(".")[1:]
        while parts and (file / parts[0]).is_dir():
            file /= parts.pop(0)
        assert (file / f"{parts[0]}.py").is_file(), name
