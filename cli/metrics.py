"""Print or serve the home's metrics in Prometheus' form."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from cli.app.commands import Command
from cli.app.options import ProfileOption
from resources.home import NotReady
from resources.settings import Settings


def command(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Serve them on this port; 0: print them once.")
    ] = 0,
    host: Annotated[str, typer.Option(help="Address that the port is opened on.")] = "127.0.0.1",
    profile: ProfileOption = None,
) -> None:
    """Print the home's metrics in Prometheus' form, or serve them.

    The gateway (`ratchet serve`) has its own at `/metrics`. deploy/monitoring has alert rules and a
    board for both.
    """
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server

    from pipelines import instance
    from pipelines.metrics import HomeCollector

    settings = Settings.read(profile)
    settings.home.make()
    registry = CollectorRegistry()
    with instance.opened(settings) as dagster:
        registry.register(HomeCollector(settings, dagster))
        if not port:
            print(generate_latest(registry).decode(), end="")
            return
        try:
            start_http_server(port, host, registry)
        except OSError as error:
            raise NotReady(
                f"cannot bind port {port} on {host} ({error.strerror}): choose another with --port"
            ) from error
        print(f"metrics on http://{host}:{port}/metrics", flush=True)
        while True:
            time.sleep(3600)


COMMAND = Command("Run", command)
