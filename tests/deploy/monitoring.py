"""The series that the alert rules and the board name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
GATEWAY = re.compile(r"ratchet_(requests|request|refused|observations|arm|running|queued|breaker"
                     r"|release_open|serving)")  # fmt: skip


def rules() -> dict[str, str]:
    """Return the expression of each alert by its name."""
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def named(gateway: bool) -> set[str]:
    """Return the names of the series, of the gateway or of the home."""
    return {name for name in _all() if bool(GATEWAY.match(name)) == gateway}


def _all() -> Iterator[str]:
    board = json.loads((FOLDER / "board.json").read_text(encoding="utf-8"))
    expressions = [each["expr"] for panel in board["panels"] for each in panel["targets"]]
    for expression in [*rules().values(), *expressions]:
        yield from re.findall(r"ratchet_\w+", expression)
