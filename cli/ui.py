"""Start Dagster's web interface and daemon, with sensors and schedules."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from assets.stages import OWNERS
from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.display.screen import screen
from pipelines.instance import ROOT, unreachable
from pipelines.launch import prepare_run
from pipelines.process import restore_sigint
from resources.home import NotReady
from resources.ray.head import free_ports
from resources.ray.private import RUN
from resources.settings import Settings

# The graph with each group of assets open, as Dagster writes it in an address.
OPEN = ",".join(f"global@global:{name}" for name in OWNERS)


def ui(port: int, settings: Settings, console: Console) -> NoReturn:
    """Replace this process by `dagster dev`: a signal to this command ends Dagster and its
    processes. Active runs continue.
    """
    prepare_run(settings, trains=False)
    if why := unreachable(settings.profile.orchestration):
        raise NotReady(why)
    home = settings.home
    if listens(port):
        busy, [port] = port, free_ports(1)
        console.print(f"Port {busy} is in use; using {port}.")
    environment = os.environ | settings.environment() | {RUN: str(home.path / "ui")}
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    retrain = "on" if settings.profile.automation.retrain else "off"
    console.print(
        f"Dagster for {home.path}: http://127.0.0.1:{port}   (nightly training and retraining are "
        f"{retrain}; Ctrl-C stops Dagster)\n"
        f"The graph, all groups open: http://127.0.0.1:{port}/asset-groups?expanded={OPEN}",
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
    """Return whether a process listens on this port of the machine."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def command(
    port: Annotated[
        int,
        typer.Option(
            help="Port of the web interface on 127.0.0.1; another free one if it is in use."
        ),
    ] = 3000,
    profile: ProfileOption = None,
) -> None:
    """Start Dagster's web interface and daemon, with sensors and schedules."""

    ui(port, Settings.read(profile), screen())


COMMAND = Command("Run", command)
