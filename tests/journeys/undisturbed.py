"""The result of an undisturbed pipeline run, computed once for each version of the code.

The journeys that kill processes compare with it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from artifacts.manifest import code_version
from resources.home import Home
from resources.run_record import PipelineRun
from tests.journeys.demo_run import demo, results_of

# Each version of the code has its own reference.
FOLDER = Path(".ratchet/soak").absolute() / code_version()
HOME = FOLDER / "undisturbed"


def undisturbed() -> dict[str, Any]:
    """Return the measurements and the result of the undisturbed run.

    They are `seconds` of the whole run, `training_s` of the training, and the fields of
    demo_run.Results.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / "undisturbed.json"
    if not file.exists():
        shutil.rmtree(HOME, ignore_errors=True)
        run = demo(HOME)
        assert run.code == 0, run.output[-2000:]
        stages = PipelineRun(Home(HOME).runs, "chain-0001").record.stages
        file.write_text(
            json.dumps(
                {"seconds": run.seconds, "training_s": stages["checkpoint"].seconds}
                | asdict(results_of(HOME))
            )
        )
    result: dict[str, Any] = json.loads(file.read_text())
    return result


def before_training(home: Path) -> None:
    """Create a home with the undisturbed run's artifacts from before the training."""
    shutil.rmtree(home, ignore_errors=True)
    for name in ("datasets", "batteries", "checkpoints"):
        if (HOME / name).exists():
            shutil.copytree(
                HOME / name,
                home / name,
                ignore=lambda folder, names: [each for each in names if each.startswith("chain-")],
            )
