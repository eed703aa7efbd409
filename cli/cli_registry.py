"""The commands about versions and what they came from. Thin: each loads what it needs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.cli_data import ProfileOption

VersionArgument = Annotated[
    str,
    typer.Argument(
        help="A version's number, champion, previous, challenger, or a checkpoint's name."
    ),
]


def register(app: typer.Typer) -> None:
    """Puts them beside the others."""
    for command in (rollback, registry, explain, why_not, provenance, reproduce, card):
        app.command()(command)


def rollback(
    to: Annotated[
        int | None,
        typer.Option(help="Version to go back to; without it the champion before this one."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Kept in the ledger.")] = "",
    profile: ProfileOption = None,
) -> None:
    """Makes the champion before this one champion again, and says what it undid."""
    from cli.registry_commands import rollback

    raise typer.Exit(rollback(to, reason, profile, Console()))


def registry(profile: ProfileOption = None) -> None:
    """Every version and what came of it; tells MLflow what it was not told. Exits 1 where MLflow cannot be told."""
    from cli.registry_commands import show_registry

    raise typer.Exit(show_registry(profile, Console()))


def explain(version: VersionArgument = "champion", profile: ProfileOption = None) -> None:
    """Why a version was promoted: reasons, numbers, pictures. Exits 1 where it was not."""
    from cli.explain import explain

    raise typer.Exit(explain(version, profile, Console()))


def why_not(version: VersionArgument = "challenger", profile: ProfileOption = None) -> None:
    """Why a version was refused, and what would have sufficed. Exits 1 where it was not refused."""
    from cli.explain import why_not

    raise typer.Exit(why_not(version, profile, Console()))


def provenance(
    subject: Annotated[
        str,
        typer.Argument(
            help="A version as above, a score such as chain-0001--heldout, or the beginning of a hash."
        ),
    ] = "champion",
    as_json: Annotated[
        bool, typer.Option("--json", help="For machines: nodes, edges, and the summary.")
    ] = False,
    graph: Annotated[
        Path | None, typer.Option(help="Draw it to this file: .svg, .html or .mmd (Mermaid).")
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """What a version or a score was made from, back to the raw problems. Exits 1 where a link is nowhere any more."""
    from cli.provenance import provenance

    raise typer.Exit(provenance(subject, as_json, graph, profile, Console()))


def reproduce(
    score: Annotated[
        str,
        typer.Argument(
            help="A score such as chain-0001--heldout, the beginning of its hash, or a scorecard's path."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="The benchmark's file of a scorecard, where it lies elsewhere now."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the new scorecard to this file.")] = None,
    profile: ProfileOption = None,
) -> None:
    """Runs a score again from its passport and names each difference. Exits 0 where every verdict is the same, 1 not.

    A score of the store is answered and judged again. Of a scorecard that `ratchet evaluate --benchmark` wrote the answers that it holds are judged
    again; where they were left out of it, its file of completions or its model is asked for them.
    """
    from cli.reproduce import reproduce

    raise typer.Exit(reproduce(score, out, profile, Console(), data))


def card(
    version: VersionArgument = "champion",
    out: Annotated[
        Path | None, typer.Option(help="Folder for README.md; without it the card is printed.")
    ] = None,
    wandb: Annotated[
        bool,
        typer.Option(
            "--wandb",
            help="Also log version and card as a W&B artifact; offline unless WANDB_API_KEY is set.",
        ),
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """A model card in Hugging Face's format, made from the passport."""
    from cli.model_card import card

    raise typer.Exit(card(version, out, wandb, profile, Console()))
