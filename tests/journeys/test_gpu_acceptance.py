"""`ratchet gpu-acceptance --device cpu`, itself killed once: the same command continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.journeys.demo_run import orphans, ratchet, wait_until


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_killed_acceptance_continues_and_every_part_passes(tmp_path: Path) -> None:
    folder, log = tmp_path / "acceptance", tmp_path / "log"
    command = ratchet("gpu-acceptance", "--device", "cpu", "--out", str(folder))
    environment = os.environ | {"RATCHET_HOME": str(tmp_path / "unused")}
    with log.open("wb") as out:
        first = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        wait_until(lambda: (folder / "kill.json").exists() or first.poll() is not None, 1800)
        assert first.poll() is None, log.read_text(encoding="utf-8")[-3000:]
        first.send_signal(signal.SIGKILL)
        first.wait()
        second = subprocess.run(command, stdout=out, stderr=out, env=environment, check=False)
    assert second.returncode == 0, log.read_text(encoding="utf-8")[-3000:]
    result = json.loads((folder / "acceptance.json").read_text(encoding="utf-8"))
    states = {part["name"]: part["state"] for part in result["parts"]}
    # only a GPU and a whole training can pass them
    passed = {name: state for name, state in states.items() if name not in ("gate", "speed")}
    assert result["passed"], states
    assert set(passed.values()) == {"passed"}, states
    assert len(result["attempts"]) > 1
    assert result["training"]["scale"]["precision"] == "bf16"
    assert "kill and resume" in (folder / "index.html").read_text(encoding="utf-8")
    assert not (tmp_path / "unused").exists()
    assert orphans(folder / "home") == []
