"""The command line starts quickly, refuses bad input in one line, and trains once per home."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from resources.home import Home
from tests.cli.conftest import Called
from tests.lease_holder import holding
from tests.pipelines.home_builder import HomeBuilder

ROOT = Path(__file__).parents[2]
LOADED = (
    "import sys, cli.main as c; sys.argv = ['ratchet', {args}]\n"
    "try: c.main()\nexcept SystemExit: pass\nprint('dagster' in sys.modules)"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ("--help",),
        ("status",),
        ("status", "--provenance"),
        ("judge",),
        ("demo", "--help"),
        ("data", "show", "--help"),
    ],
)
def test_fast_commands_do_not_import_dagster(
    home_builder: HomeBuilder, args: tuple[str, ...]
) -> None:
    code = LOADED.format(args=", ".join(map(repr, args)))
    environment = os.environ | {"RATCHET_HOME": str(home_builder.run_context.home.path)}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert result.stdout.splitlines()[-1] == "False", result.stderr


def test_status_names_the_champion(ratchet: Called, home_builder: HomeBuilder) -> None:
    home_builder.promoted("chain-0001-sft")
    _, text, _ = ratchet(home_builder.run_context.home.path, "status")
    assert re.search("version 1.*chain-0001-sft", text)
    assert re.search("training +none", text)


def test_status_of_a_missing_home_names_the_first_command(ratchet: Called, tmp_path: Path) -> None:
    code, text, _ = ratchet(tmp_path / "none", "status")
    assert not code
    assert "`ratchet demo`" in text
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", [("demo",), ("train", "--seeds", "2")])
def test_a_second_training_in_one_home_exits_with_code_three(
    ratchet: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("RATCHET_SET", "needs.memory_gib=0.1")
    with holding(Home(tmp_path).lease) as process:
        code, _, error = ratchet(tmp_path, *command, "--profile", "small")
    assert code == 3
    assert re.search(rf"chain-0001\b.*\b{process.pid}\b", error)
    assert len(error.splitlines()) == 1
