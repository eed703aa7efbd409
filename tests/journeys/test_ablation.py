"""`ratchet ablate` as a user runs it: two real trainings of two steps, and a table.

A repeated command trains nothing again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = (
    "ablate",
    "curriculum=window",
    "--profile",
    "small",
    "--seeds",
    "1",
    "--steps",
    "2",
    "--set",
    "training.save_every=1",
)


def ratchet(home: Path) -> str:
    command = [sys.executable, "-m", "cli.main", *COMMAND]
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"RATCHET_HOME": str(home)},
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_change_is_trained_evaluated_and_reported_once(tmp_path: Path) -> None:
    output = ratchet(tmp_path / "home")
    assert "seed 1001 (1 of 1)" in output
    assert "24 held-out tasks" in output
    page = next((tmp_path / "home" / "reports").glob("study-*/ablation-*.json"))
    (change,) = json.loads(page.read_text())["changes"].values()
    assert change["tasks"] == 24
    assert change["seeds"] == 1
    repeated = ratchet(tmp_path / "home")
    assert repeated.count("seed 1001 (1 of 1)") == 2
    assert json.loads(page.read_text())["changes"]["curriculum=window"] == change
