"""Every command line that the documentation shows is one that `ratchet` knows, with its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cli.main import app

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
    """What of it `ratchet` does not know; empty where it knows all."""
    command, words = COMMANDS, line.split()[1:]
    while words and hasattr(command, "get_command") and not words[0].startswith("-"):
        if (named := command.get_command(None, words[0])) is None:
            return f"no command {words[0]}"
        command, words = named, words[1:]
    if command.name == "judge":  # reads its own arguments
        return ""
    known = {
        option
        for parameter in command.params
        for option in [*parameter.opts, *parameter.secondary_opts]
    } | {"--help"}
    given = [word.strip("[]\"'").split("=")[0] for word in words]
    return next(
        (
            f"no option {word}"
            for word in given
            if re.match(r"--?[a-z]", word) and word not in known
        ),
        "",
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_shown_is_there(page: Path) -> None:
    assert not [f"{line}: {why}" for line in shown(page) if (why := unknown(line))]


def test_one_that_is_not_there_is_told() -> None:
    assert (
        unknown("ratchet retrain chain-0001") == "no command retrain"
        and unknown("ratchet train --sedes 5") == "no option --sedes"
    )
    assert sum(len(list(shown(page))) for page in PAGES) > 100
