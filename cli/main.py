"""The entry point `ratchet`: find the command, run it, and report errors.

A command is one file (or package) of this folder with a `GROUP`, the heading under which `ratchet
--help` lists it. It has a function `command`, or a Typer `app` of subcommands. Help is read from
the files' docstrings; a command's file is imported only when the command runs.
"""

from __future__ import annotations

import ast
import errno
import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

GROUPS = ("Run", "Data", "Train", "Evaluate", "Promote and explain", "Compare trainings")
FOLDER = Path(__file__).parent


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


def main() -> None:
    """Run the command line.

    An error that the user can fix is one line on stderr and exit code 2. Any other error is a bug
    and shows its traceback.
    """
    try:
        app()
    except Exception as error:
        if (message := user_message(error)) is None:
            raise
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


def user_message(error: Exception) -> str | None:
    """Return the message of an error that the user can fix; None for a bug."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        from resources.home import Home

        return Home.from_environment().full()
    # Errors of an object store are known by name: botocore is only installed with one.
    if type(error).__module__.startswith("botocore."):
        variables = "AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        return f"object store: {error}: check {variables}"
    return str(error) if isinstance(error, user_errors()) else None


def user_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that the user can fix."""
    from artifacts.integrity import CorruptArtifact
    from assets.verified_reward import UnverifiedReward
    from cli.explain import UnknownVersion
    from evaluation.generation.openai_client import MissingCompletions
    from evaluation.judging.reports import NotJudged
    from evaluation.promotion.rate import Incomparable
    from problems.columns import ProblemError
    from problems.synthesis.replies import EndpointDown
    from resources.config.load import ProfileError
    from resources.home import NotReady
    from resources.ray.private import TrainingFailed
    from resources.registry.ledger import LedgerChanged, NothingToRollBack, Superseded
    from resources.registry.ledger_database import LedgerUnreachable
    from resources.registry.regressions import BadLine
    from rewards.own import RewardFileError
    from verl_jobs.config.references import PluginError
    from verl_jobs.planner.preflight import CannotTrain
    from verl_jobs.sft.start import UnfitStart

    configuration = (NotReady, ProfileError, ProblemError, PluginError, RewardFileError)
    training = (UnverifiedReward, UnfitStart, CannotTrain, TrainingFailed)
    evaluation = (MissingCompletions, EndpointDown, NotJudged, Incomparable)
    registry = (NothingToRollBack, Superseded, LedgerUnreachable, UnknownVersion)
    changed = (CorruptArtifact, LedgerChanged, BadLine)
    return (FileNotFoundError, *configuration, *training, *evaluation, *registry, *changed)


if __name__ == "__main__":
    main()
