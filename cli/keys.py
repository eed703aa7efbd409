"""Make, list and revoke the gateway's API keys."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import JsonOption
from cli.display.screen import print_json, screen
from resources.settings import Settings

app = typer.Typer(
    help="Make, list and revoke the gateway's API keys.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of the new key.")],
    operator: Annotated[
        bool, typer.Option("--operator", help="It may load versions and read metrics too.")
    ] = False,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, help="Rate limit. Default: serving.requests_per_minute.")
    ] = None,
    body_mib: Annotated[
        float | None, typer.Option(min=0.001, help="Largest body. Default: serving.body_mib.")
    ] = None,
    priority: Annotated[
        int, typer.Option(min=-10, max=10, help="Of its requests in the queue; higher goes first.")
    ] = 0,
    consent: Annotated[
        bool,
        typer.Option(
            "--consent",
            help="Its owner consents that requests whose tests no answer passed are kept, and "
            "become training problems.",
        ),
    ] = False,
) -> None:
    """Make a key and print it. Only its hash is stored: it cannot be shown again."""
    from serving.gateway.keys import Keys, Role

    keys = Keys(Settings.read().home.api_keys)
    role: Role = "operator" if operator else "user"
    print(keys.add(name, role, requests_per_minute, body_mib, priority, consent))


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the keys, without the keys themselves."""
    from serving.gateway.keys import Keys

    keys = Keys(Settings.read().home.api_keys).all()
    if as_json:
        shown = ("name", "id", "role", "requests_per_minute", "body_mib", "priority", "consent")
        rows = [{name: getattr(key, name) for name in (*shown, "created_at")} for key in keys]
        print_json(rows)
        return

    columns = ("name", "id", "role", "requests/min", "body MiB", "priority", "consent", "made")
    table = Table(*columns, box=None)
    for key in keys:
        limits = (str(key.requests_per_minute or ""), str(key.body_mib or ""), str(key.priority))
        consent = "yes" if key.consent else "no"
        table.add_row(key.name, key.id, key.role, *limits, consent, key.created_at)
    console = screen()
    console.width = max(console.width, 120)
    console.print(table)


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="Name of the key.")]) -> None:
    """Remove a key. A running gateway refuses it within a second."""
    from serving.gateway.keys import Keys

    Keys(Settings.read().home.api_keys).revoke(name)


COMMAND = Command("Serve", app)
