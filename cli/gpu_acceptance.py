"""Train a model by the GPU path once, with a kill in it, and check every part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.app.commands import Command
from cli.display.screen import screen
from resources.home import Home


def command(
    device: Annotated[
        Literal["cuda", "cpu"],
        typer.Option(help="cpu: the same in small, with the engine for CPUs."),
    ] = "cuda",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder for all files. Default: acceptance-DEVICE in RATCHET_HOME."
        ),
    ] = None,
    base: Annotated[
        str,
        typer.Option(
            help="Checkpoint that learns the shipped source `everyday`: as the profile's "
            "base. Default: a tiny model that learns the embedded family."
        ),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            help="Stop after this part: machine, supervised, engine, reinforcement, "
            "kill and resume, gate."
        ),
    ] = "",
) -> None:
    """Train a model by the GPU path once, with a kill in it, and check every part.

    Writes index.html and acceptance.json after each part. Exits 1 if a check failed. A stopped
    command continues when it is called again.
    """
    from experiments.acceptance.acceptance import accept
    from experiments.acceptance.checks import PARTS

    place = folder or Home.from_environment().path / f"acceptance-{device}"
    if until and until not in (names := [part.name for part in PARTS]):
        raise typer.BadParameter(f"no part {until!r}: the parts are {', '.join(names)}")
    raise typer.Exit(accept(device, place.expanduser().absolute(), screen(), base, until))


COMMAND = Command("Run", command)
