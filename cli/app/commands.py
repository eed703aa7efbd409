"""The commands of `ratchet`, and its help.

A command is one file (or package) of `cli/` with a `COMMAND`. Groups and summaries of the help are
read from the files' text; a command's file is imported only when the command runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sandbox.discovery import BrokenEntry, Declared, declared, load
from sandbox.reading import near

GROUPS = ("Run", "Data", "Train", "Evaluate", "Promote and explain", "Serve", "Compare trainings")
FOLDER = Path(__file__).parent.parent
PACKAGE = __name__.removesuffix(".app.commands")


@dataclass(frozen=True)
class Command:
    """A command of `ratchet`.

    group: the heading under which `ratchet --help` lists it. run: its function, or a Typer app of
    subcommands. settings: arguments of Typer's `command`.
    """

    group: str
    run: Callable[..., Any] | typer.Typer
    settings: Mapping[str, Any] = field(default_factory=dict)


@cache
def commands() -> dict[str, Declared]:
    """Return every command by name, in the order of `GROUPS` and then of names.

    Raises BrokenEntry for a command of an unknown group.
    """
    by_name = declared(PACKAGE, FOLDER, Command)
    for command in by_name.values():
        if _group(command) not in GROUPS:
            raise BrokenEntry(f"{command.module}: unknown group: use one of {', '.join(GROUPS)}")
    ordered = sorted(by_name.values(), key=lambda each: (GROUPS.index(_group(each)), each.name))
    return {command.name.replace("_", "-"): command for command in ordered}


def _group(command: Declared) -> Any:
    return command.arguments[0]


class Commands(TyperGroup):
    """Typer's group of commands; a command is imported only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(commands())

    def get_command(self, ctx: Any, name: str) -> Any:
        if name == "rollout":
            ctx.fail("a deployment by steps is a release: use `ratchet release`")
        if name not in commands():
            return None
        command = load(commands()[name].module, Command)
        if isinstance(command.run, typer.Typer):
            return typer.main.get_group(command.run)
        single = typer.Typer(rich_markup_mode=None, add_completion=False)
        single.command(name, **command.settings)(command.run)
        return typer.main.get_command(single)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in commands() and args[0] != "rollout":
            ctx.fail(f"no command {args[0]!r}{near(args[0], commands())}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for group in GROUPS:
            rows = [
                (name, command.summary)
                for name, command in commands().items()
                if _group(command) == group
            ]
            with formatter.section(group):
                formatter.write_dl(rows)


app = typer.Typer(
    name="ratchet",
    cls=Commands,
    help="Turns programming problems into better code models, and only ever moves up.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        from artifacts.distribution import version

        print(f"ratchet {version()}")
        raise typer.Exit


@app.callback()
def ratchet(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Turns programming problems into better code models, and only ever moves up."""
