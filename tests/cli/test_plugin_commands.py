"""`ratchet plugins` shows the training plug-ins of a profile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli import main as cli


def ratchet(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line in this process and return its exit code."""
    monkeypatch.setenv("RATCHET_SET", "")  # the command sets it; restored after the test
    monkeypatch.setattr(sys, "argv", ["ratchet", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_an_unusable_plugin_is_one_line_with_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        ratchet(monkeypatch, "plugins", "--set", f"training.plugins.loss={tmp_path}/gone.py:loss")
        == 2
    )
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path}/gone.py: ")
    assert error.count("\n") == 1


def test_a_profile_without_plugins_names_their_documentation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ratchet(monkeypatch, "plugins") == 0
    assert "docs/how-to/write-a-plugin.md" in capsys.readouterr().out
