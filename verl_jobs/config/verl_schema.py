"""The names of verl's settings, read from its configuration files without importing it."""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FORM = re.compile(r"(?P<sign>\+{0,2}|~)(?P<name>[\w.@/-]+)(?P<value>=.*)?", re.DOTALL)


def checked(override: str, *, megatron: bool = False) -> str:
    """Return an override of verl in the form that replaces ours or adds to verl's.

    override: Hydra's `name=value`, `+name=value` or `~name`. Raises ValueError for another form,
    and for a name that verl does not have; `+` may add a key below a section that it has.
    """
    match = FORM.fullmatch(override)
    if match is None or (match["sign"] != "~") != bool(match["value"]):
        raise ValueError(f"{override!r}: write name=value, +name=value or ~name, as for Hydra")
    names, name = known_names(megatron), match["name"]
    looked_up = name.rpartition(".")[0] if match["sign"].startswith("+") else name
    if looked_up not in names and name not in names:
        near = difflib.get_close_matches(name, names, 1, cutoff=0.0)
        raise ValueError(f"verl has no setting {looked_up!r}: the nearest is {near[0]!r}")
    return override if match["sign"] == "~" else f"++{name}{match['value']}"


@cache
def known_names(megatron: bool) -> frozenset[str]:
    """Return the dotted names of all settings and sections of verl's PPO trainer."""
    spec = importlib.util.find_spec("verl")
    if spec is None or spec.origin is None:
        raise ValueError("training.verl needs verl, which is not installed")
    file = f"_generated_ppo_{'megatron_' if megatron else ''}trainer.yaml"
    path = Path(spec.origin).parent / "trainer" / "config" / file
    return frozenset(_names(yaml.safe_load(path.read_text(encoding="utf-8"))))


def _names(section: Mapping[str, Any], prefix: str = "") -> set[str]:
    names = set[str]()
    for key, value in section.items():
        names.add(f"{prefix}{key}")
        if isinstance(value, Mapping):
            names |= _names(value, f"{prefix}{key}.")
    return names
