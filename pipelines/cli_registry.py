"""The commands about versions and what they came from. Thin: each loads what it needs when it is called."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from pipelines.cli_data import ProfileOption


def register(app: typer.Typer) -> None:
    """Puts them beside the others."""
    for command in (rollback, registry):
        app.command()(command)


def rollback(
    to: Annotated[int | None, typer.Option(help="Version to go back to; without it the champion before this one.")] = None,
    reason: Annotated[str, typer.Option(help="Kept in the ledger.")] = "",
    profile: ProfileOption = None,
) -> None:
    """Makes the champion before this one champion again, and says what it undid."""
    from pipelines.registry_commands import rollback

    raise typer.Exit(rollback(to, reason, profile, Console()))


def registry(profile: ProfileOption = None) -> None:
    """Every version and what came of it; tells MLflow what it was not told. Exits 1 where MLflow cannot be told."""
    from pipelines.registry_commands import show_registry

    raise typer.Exit(show_registry(profile, Console()))
