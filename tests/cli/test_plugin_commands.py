"""`ratchet plugins`: what a user reads of parts of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli import main as cli


def ratchet(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command line in this process; its exit code."""
    monkeypatch.setenv("RATCHET_SET", "")  # the command sets it for the process that it is
    monkeypatch.setattr(sys, "argv", ["ratchet", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_a_part_that_cannot_be_used_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        ratchet(monkeypatch, "plugins", "--set", f"training.plugins.loss={tmp_path}/gone.py:loss")
        == 2
    )
    told = capsys.readouterr().err
    assert told.startswith(f"error: {tmp_path}/gone.py: no such file") and told.count("\n") == 1


def test_a_profile_without_any_says_where_they_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ratchet(monkeypatch, "plugins") == 0
    assert "docs/plugins.md" in capsys.readouterr().out
