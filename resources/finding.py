"""What a check has found about one part of a machine or a home."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from artifacts.atomic import write_atomic

FILE = "health.json"  # of the home: the newest findings, for `ratchet status`


@dataclass(frozen=True)
class Finding:
    """The result of one check of the home.

    blocks: whether the answer of all checks together is no.
    """

    part: str
    found: str
    fix: str = ""  # what to do; empty: nothing
    blocks: bool = False


def keep_findings(home: Path, findings: Sequence[Finding], now: datetime) -> None:
    """Write the findings of this moment into the home. A full disk keeps the earlier ones."""
    content = {"at": now.timestamp(), "findings": [asdict(finding) for finding in findings]}
    with suppress(OSError):
        write_atomic(home / FILE, json.dumps(content, indent=1))


def kept_findings(home: Path) -> tuple[datetime, dict[str, Finding]] | None:
    """Return when the home was checked last, and the findings by part; None if it never was, or the
    file cannot be read.
    """
    try:
        content = json.loads((home / FILE).read_text(encoding="utf-8"))
        found = [Finding(**each) for each in content["findings"]]
        return datetime.fromtimestamp(content["at"], UTC), {each.part: each for each in found}
    except (OSError, ValueError, KeyError, TypeError):
        return None
