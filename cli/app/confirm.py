"""Ask before a command changes something."""

from __future__ import annotations

import sys

import typer


def confirmed(question: str, yes: bool) -> bool:
    """Return whether the user agrees. yes: the option `--yes`, with which nothing is asked.

    Raises BadParameter if nobody can answer, because the input is no terminal.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise typer.BadParameter(
            f"give --yes: the input is no terminal that can answer {question!r}"
        )
    return typer.confirm(question)
