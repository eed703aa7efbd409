"""Serve the champion over HTTP, with OpenAI's API."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import ProfileOption, SetOption
from cli.display.screen import screen
from resources.registry.ledger import champion_of
from resources.registry.ledger_database import LedgerUnreachable
from resources.settings import Settings


def serve(port: int, settings: Settings, console: Console) -> None:
    """Serve until Ctrl-C or SIGTERM. Raises NotReady."""
    from serving.gateway.app import make_app
    from serving.gateway.keys import Keys
    from serving.gateway.server import listen, server_of
    from serving.release.attach import attached_router
    from serving.release.page import release_routes
    from serving.release.web_metric import analysis_routes

    home, serving = settings.home, settings.profile.serving
    settings.remember()
    keys = Keys(home.api_keys, later=True)
    has_keys = bool(keys.all()) or not keys.known
    sandbox = settings.profile.sandbox
    ledger = settings.ledger
    app = make_app(
        home,
        serving,
        ledger=ledger,
        store=settings.store,
        sandbox=sandbox,
        production=settings.profile.production,
        router_of=lambda catalog: attached_router(home, ledger, catalog),
        pages=[release_routes(home, ledger), analysis_routes(home, ledger)],
    )
    server = server_of(app, serving)
    listener = listen(serving, port, has_keys)
    scheme = "https" if serving.tls_key else "http"
    address = f"{scheme}://{serving.host}:{listener.getsockname()[1]}"
    rights = "API keys are needed" if has_keys else "no API keys: for this machine only"
    try:
        champion = champion_of(settings.history)
        answers = (
            f"serves the champion of {home.path}, {champion.checkpoint}, once it is loaded"
            if champion
            else f"answers with 503 until {home.path} has a champion: `ratchet demo` or `ratchet "
            "train` makes the first"
        )
    except LedgerUnreachable as error:
        if not home.database:
            raise
        answers = f"answers with 503 until the database can be reached ({error})"
    console.print(f"{address}/v1 {answers} ({rights})", soft_wrap=True)
    # The server ends in order, and then repeats the signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with listener:
        server.run(sockets=[listener])


def command(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 8000,
    profile: ProfileOption = None,
    changes: SetOption = None,
) -> None:
    """Serve the champion over HTTP, with OpenAI's API, until Ctrl-C or SIGTERM.

    Every request is answered by the version that is champion at that time, or by the challenger of
    a release (`ratchet deploy`), which this command moves forward or takes back.
    """
    serve(port, Settings.read(profile, changes or ()), screen())


COMMAND = Command("Serve", command)
