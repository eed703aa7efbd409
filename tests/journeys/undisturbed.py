"""What a chain comes to that nobody disturbs, made once for each version of the code: the reference of the journeys that kill."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from artifacts.manifest import code_version
from resources.run_record import Chain
from tests.journeys.chain import demo, left

FOLDER = (
    Path(".ratchet/soak").absolute() / code_version()
)  # what another code did is no reference for this one
HOME = FOLDER / "undisturbed"


def undisturbed() -> dict[str, Any]:
    """`seconds` of the whole, `training_s` of the training, and what it left (chain.Left)."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    told = FOLDER / "undisturbed.json"
    if not told.exists():
        shutil.rmtree(HOME, ignore_errors=True)
        run = demo(HOME)
        assert run.code == 0, run.output[-2000:]
        stages = Chain(HOME / "runs" / "chain-0001").record.stages
        told.write_text(
            json.dumps(
                {"seconds": run.seconds, "training_s": stages["checkpoint"].seconds}
                | asdict(left(HOME))
            )
        )
    found: dict[str, Any] = json.loads(told.read_text())
    return found


def before_training(home: Path) -> None:
    """A home in which all is done that comes before the training, as the undisturbed one did it."""
    shutil.rmtree(home, ignore_errors=True)
    for name in ("datasets", "batteries", "checkpoints"):
        if (HOME / name).exists():
            shutil.copytree(
                HOME / name,
                home / name,
                ignore=lambda folder, names: [each for each in names if each.startswith("chain-")],
            )
