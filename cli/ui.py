"""Start Dagster's web interface and daemon, with sensors and schedules on."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from cli.options import ProfileOption
from pipelines.instance import ROOT
from pipelines.launch import prepare_run
from pipelines.process import MARK, restore_sigint
from resources.ray.head import free_ports
from resources.settings import Settings

GROUP = "Run"


def ui(port: int, settings: Settings, console: Console) -> NoReturn:
    """Replace this process by `dagster dev`, so that whatever ends this command ends Dagster and
    its processes; a working run continues.
    """
    prepare_run(settings, trains=False)
    home = settings.home
    if listens(port):
        taken, [port] = port, free_ports(1)
        console.print(f"Port {taken} is in use, taking {port}.")
    environment = os.environ | settings.environment() | {MARK: str(home.path / "ui")}
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    console.print(
        (
            f"Dagster for {home.path}: http://127.0.0.1:{port}   (Ctrl-C ends it; sensors and the "
            "nightly schedule are on)"
        ),
        soft_wrap=True,
    )
    workspace = str(Path(environment["DAGSTER_HOME"]) / "workspace.yaml")
    command = [
        sys.executable,
        "-m",
        "dagster",
        "dev",
        "-w",
        workspace,
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    os.chdir(ROOT)
    sys.stdout.flush()
    restore_sigint()
    os.execve(sys.executable, command, environment)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def command(
    port: Annotated[
        int,
        typer.Option(
            help="Where the web interface listens, on 127.0.0.1; the next free one is taken."
        ),
    ] = 3000,
    profile: ProfileOption = None,
) -> None:
    """Start Dagster's web interface and daemon, with sensors and schedules on."""

    ui(port, Settings.read(profile), Console())
