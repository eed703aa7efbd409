"""`ratchet audit`: exit codes, and JSON in the form of OpenEnv's results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app.commands import app
from measurements.audit_folders import FOLDER_FAULTS
from measurements.audit_tasks import write_base


@pytest.mark.parametrize(("fault", "code"), [("", 0), ("the solution in the instruction", 1)])
def test_a_failed_check_sets_the_exit_code(
    fault: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    write_base(tmp_path / "task", "total")
    if fault:
        FOLDER_FAULTS[fault][0](tmp_path / "task", "total")
    words = ["audit", str(tmp_path / "task"), "--files-only", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code
    [task] = json.loads(result.stdout)["tasks"]
    assert {"check_id", "status", "measured", "evidence", "remediation", "duration_s"} == set(
        task["results"][0]
    )
