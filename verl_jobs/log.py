"""The log of a process: its last line usually says why the process ended."""

from __future__ import annotations

import re
from pathlib import Path

COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # Ray colours the output of its workers
LENGTH = 300


def last_line(log: Path, *words: str) -> str:
    """Return the last line of a log that contains one of the words, else the last line that is not
    blank; at most LENGTH characters, without colours. Empty if there is no such line or file.
    """
    if not log.exists():
        return ""
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    matching = [line for line in lines if any(word in line for word in words)]
    return COLOURS.sub("", (matching or lines or [""])[-1]).strip()[:LENGTH]
