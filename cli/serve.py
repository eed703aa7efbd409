"""Serve the champion over HTTP, with OpenAI's API."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from cli.options import ProfileOption
from resources.settings import Settings

GROUP = "Serve"


def command(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    profile: ProfileOption = None,
) -> None:
    """Serve the champion over HTTP, with OpenAI's API, until Ctrl-C or SIGTERM.

    Every request is answered by the version that is champion at that time.
    """
    from serving.gateway.app import HOST, serve

    home = Settings.read(profile).home
    Console().print(f"http://{HOST}:{port}/v1 serves the champion of {home.path}", soft_wrap=True)
    serve(home, port)
