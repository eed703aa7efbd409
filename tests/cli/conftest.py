"""Fixture: the command line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli import main as cli

Called = Callable[..., tuple[object, str, str]]


@pytest.fixture
def ratchet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Called]:
    """Run `ratchet` in this process: (home, *arguments) -> exit code, stdout, stderr."""
    # The command line sets these variables; monkeypatch restores them after the test.
    for name in ("RATCHET_SET", "RATCHET_UNVERIFIED", "RATCHET_PROFILE", "DAGSTER_HOME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def run(home: Path, *arguments: str) -> tuple[object, str, str]:
        monkeypatch.setenv("RATCHET_HOME", str(home))
        monkeypatch.setattr(sys, "argv", ["ratchet", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    handler = signal.getsignal(signal.SIGINT)
    yield run
    signal.signal(signal.SIGINT, handler)
