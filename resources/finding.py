"""What a check has found about one part of a machine or a home."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """blocks: whether the answer of all checks together is no."""

    part: str
    found: str
    mend: str = ""  # what to do; empty: nothing
    blocks: bool = False
