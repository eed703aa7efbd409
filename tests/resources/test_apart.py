"""Checks of a model run apart from the process of a run, which never imports torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path
from resources.apart import apart
from verl_jobs.sft.start import UnfitStart, check_start

try:
    apart(check_start, Path(sys.argv[1]), tokens=10**9)
except UnfitStart as error:
    print(error)
print("torch" in sys.modules)
"""


@pytest.mark.slow
def test_a_start_is_refused_without_torch_in_this_process(tmp_path: Path) -> None:
    from verl_jobs.sft.tiny_model import TinyModel, make

    make(TinyModel(hidden=32, layers=1, heads=2), ["return x"] * 8, tmp_path)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    refusal, imported = ended.stdout.splitlines()
    assert "max_position_embeddings" in refusal
    assert imported == "False"
