"""What sandboxes have on this machine, and must not leave there."""

from __future__ import annotations

import os
from pathlib import Path


def slot_cgroups() -> dict[Path, int]:
    """Every control group of a slot, anywhere, with its worker's pid. Other sandboxes make and remove theirs while we look: glob would raise."""
    found = (Path(root) / name for root, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith("ratchet-"))
    return {path: int(path.name.split("-")[1]) for path in found}
