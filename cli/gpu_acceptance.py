"""Train a tiny model by the GPU path once, with a kill in it, and check every part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from cli.app.commands import Command
from resources.home import Home


def command(
    device: Annotated[
        Literal["cuda", "cpu"],
        typer.Option(help="cpu: the same in small, with the engine for CPUs."),
    ] = "cuda",
    folder: Annotated[
        Path | None,
        typer.Option(help="For all files. Default: acceptance-DEVICE in RATCHET_HOME."),
    ] = None,
) -> None:
    """Train a tiny model by the GPU path once, with a kill in it, and check every part.

    Writes index.html and acceptance.json. Exits 1 if a check failed. A stopped command continues
    when it is called again.
    """
    from experiments.acceptance.acceptance import accept

    place = folder or Home.from_environment().path / f"acceptance-{device}"
    raise typer.Exit(accept(device, place.expanduser().absolute(), Console()))


COMMAND = Command("Run", command)
