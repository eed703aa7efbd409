"""The commands of `ratchet`, and its help.

A command is one file (or package) of `cli/` with a `GROUP`, the heading under which `ratchet
--help` lists it. It has a function `command`, or a Typer `app` of subcommands. Help is read from
the files' docstrings; a command's file is imported only when the command runs.
"""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

GROUPS = ("Run", "Data", "Train", "Evaluate", "Promote and explain", "Serve", "Compare trainings")
FOLDER = Path(__file__).parent.parent


class Command(NamedTuple):
    """A command's entry in the help, read without importing the command."""

    name: str
    module: str
    group: str
    summary: str


@cache
def commands() -> dict[str, Command]:
    """Return every command by name, in the order of `GROUPS` and then of names."""
    unordered = []
    for file in [*FOLDER.glob("*.py"), *FOLDER.glob("*/__init__.py")]:
        text = file.read_text(encoding="utf-8")
        if (at := text.find("\nGROUP = ")) < 0:
            continue
        stem = file.parent.name if file.stem == "__init__" else file.stem
        group = ast.literal_eval(text[at + 9 : text.index("\n", at + 1)])
        summary = text.removeprefix('"""').split("\n", 1)[0].removesuffix('"""')
        unordered.append(Command(stem.replace("_", "-"), f"cli.{stem}", group, summary))
    ordered = sorted(unordered, key=lambda command: (GROUPS.index(command.group), command.name))
    return {command.name: command for command in ordered}


class Commands(TyperGroup):
    """Typer's group of commands; a command is imported only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(commands())

    def get_command(self, ctx: Any, name: str) -> Any:
        if name not in commands():
            return None
        module = importlib.import_module(commands()[name].module)
        if hasattr(module, "app"):
            return typer.main.get_group(module.app)
        single = typer.Typer(rich_markup_mode=None, add_completion=False)
        single.command(name, **getattr(module, "COMMAND_SETTINGS", {}))(module.command)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for group in GROUPS:
            rows = [
                (command.name, command.summary)
                for command in commands().values()
                if command.group == group
            ]
            with formatter.section(group):
                formatter.write_dl(rows)


app = typer.Typer(
    name="ratchet",
    cls=Commands,
    help="Turns programming problems into better code models, and only ever moves up.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def ratchet() -> None:
    """Turns programming problems into better code models, and only ever moves up."""
