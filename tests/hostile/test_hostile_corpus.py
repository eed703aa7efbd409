"""The shared corpus of attacks, at the isolation level that `auto` selects here.

The corpus is stored beside the repository.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("RATCHET_HOSTILE", ROOT.parent / "shared" / "hostile"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", ["auto", pytest.param("userns", marks=pytest.mark.soak), "bare"])
def test_the_corpus_is_judged_as_expected(level: str) -> None:
    if not (CORPUS / "run.py").exists():
        pytest.skip(f"no {CORPUS}: set RATCHET_HOSTILE to the folder that holds run.py")
    judge = shlex.join([sys.executable, "-m", "cli.main", "judge", "--isolation", level])
    command = [sys.executable, "-B", "run.py", "--judge", judge, "."]
    completed = subprocess.run(
        command,
        cwd=CORPUS,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-4000:] + completed.stderr[-2000:]
