"""Limits that a person chose for the next dataset version: `limits.json` under RATCHET_HOME.

This module has few imports, because `ratchet status` reads the file too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from artifacts.atomic import write_atomic
from artifacts.hashing import hash_data
from problems.columns import ProblemError

FILE = "limits.json"
# content hash of the source's problem -> problem_id, wall_s, cpu_s, memory_mb if measured
Choice = dict[str, dict[str, Any]]


def write_choice(home: Path, choice: Choice) -> Path:
    write_atomic(path := home / FILE, json.dumps(choice, indent=1, sort_keys=True) + "\n")
    return path


def read_choice(home: Path) -> Choice:
    """Return the choice; empty if nothing was chosen. Raises ProblemError if the file is broken."""
    path = home / FILE
    if not path.exists():
        return {}
    try:
        choice: Choice = json.loads(path.read_text(encoding="utf-8"))
        for limits in choice.values():
            if not (
                float(limits["wall_s"]) > 0 < float(limits["cpu_s"])
                and int(limits.get("memory_mb", 1)) > 0
            ):
                raise ValueError(f"{limits} must be above 0")
    except (ValueError, AttributeError, TypeError, KeyError) as error:
        raise ProblemError(
            f"invalid limits ({error!r})",
            "remove the file, or write it again with `ratchet data limits --apply`",
            str(path),
        ) from error
    return choice


def input_of(choice: Choice) -> dict[str, str]:
    """Return the input that a dataset written with this choice records; {} for no choice."""
    return {"limits": hash_data(choice)} if choice else {}
