"""Every command line in the documentation uses commands and options that `ratchet` has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cli.app.commands import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("examples/*.yaml"),
    ]
)
COMMANDS: Any = typer.main.get_command(app)
SHOWN = re.compile(r"(?:`|^(?:    |#\s+))(ratchet [a-z][^`\n]*)", re.MULTILINE)


def shown(page: Path) -> Iterator[str]:
    for match in SHOWN.finditer(page.read_text(encoding="utf-8")):
        yield (
            re.sub(r"(\s#|\s{2,}|\||>|&&).*", "", match.group(1))
            .strip()
            .rstrip("\\")
            .rstrip(".,;:")
        )


def unknown(line: str) -> str:
    """Return the unknown command or option of a line, or an empty string."""
    command, words = COMMANDS, line.split()[1:]
    while words and hasattr(command, "get_command") and not words[0].startswith("-"):
        if (named := command.get_command(None, words[0])) is None:
            return f"no command {words[0]}"
        command, words = named, words[1:]
    known = {
        option
        for parameter in command.params
        for option in [*parameter.opts, *parameter.secondary_opts]
    } | {"--help"}
    options = [word.strip("[]\"'").split("=")[0] for word in words]
    return next(
        (
            f"no option {word}"
            for word in options
            if re.match(r"--?[a-z]", word) and word not in known
        ),
        "",
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_commands_and_options_exist(page: Path) -> None:
    assert not [f"{line}: {why}" for line in shown(page) if (why := unknown(line))]


def test_unknown_commands_and_options_are_detected() -> None:
    assert unknown("ratchet retrain chain-0001") == "no command retrain"
    assert unknown("ratchet train --sedes 5") == "no option --sedes"
    assert sum(len(list(shown(page))) for page in PAGES) > 100
