"""Run programs against tests in the sandbox."""

from __future__ import annotations

import typer

from cli.app.commands import Command

SETTINGS = {
    "context_settings": {
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
    "add_help_option": False,
}


def command(context: typer.Context) -> None:
    """Run programs against tests in the sandbox."""
    from sandbox.judge import main

    raise typer.Exit(main(context.args))


COMMAND = Command("Evaluate", command, SETTINGS)
