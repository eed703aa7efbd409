"""Limits that a person chose for the next version of the data: `limits.json` under RATCHET_HOME. Light: `ratchet status` reads it too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data
from artifacts.store import write_atomic
from problems.columns import ProblemError

FILE = "limits.json"
Choice = dict[
    str, dict[str, Any]
]  # content hash of a problem as its source has it -> problem_id, wall_s, cpu_s, memory_mb where measured


def choose(home: Path, choice: Choice) -> Path:
    write_atomic(path := home / FILE, json.dumps(choice, indent=1, sort_keys=True) + "\n")
    return path


def chosen(home: Path) -> Choice:
    """Empty where nothing was chosen. Raises ProblemError when the file is broken."""
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
            f"broken ({error!r})",
            "remove it, or write it anew by `ratchet data limits --apply`",
            str(path),
        ) from error
    return choice


def input_of(choice: Choice) -> dict[str, str]:
    """What a dataset written with this choice names among its inputs: nothing where nothing was chosen."""
    return {"limits": hash_data(choice)} if choice else {}
