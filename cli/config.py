"""Show every setting with its value and where the value comes from."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, TypeAdapter
from rich.console import Console
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption, SetOption
from cli.display.screen import print_json, screen
from resources.config.load import ProfileError, layers, origin
from resources.settings import Settings

ANYTHING = TypeAdapter[Any](Any)
app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def config() -> None:
    """Show every setting with its value and where the value comes from."""


@app.command("show")
def show(
    section: Annotated[
        str, typer.Argument(help="Only this section or key, e.g. training or policy.alpha.")
    ] = "",
    profile: ProfileOption = None,
    change: SetOption = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only values that a file or a change sets.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print each value of the profile with its layer: default, a YAML file, or a change."""
    settings = Settings.read(profile, change or ())
    raise typer.Exit(show_settings(section, settings, changed, screen(), as_json=as_json))


def show_settings(
    section: str, settings: Settings, changed: bool, console: Console, *, as_json: bool = False
) -> int:
    """Print settings with their layers. Raises ProfileError if no key matches."""
    values_from = layers(settings.profile_name, settings.changes, unverified=settings.unverified)
    table = Table("setting", "value", "from", box=None, header_style="dim")
    rows = []
    for location, value in leaves(settings.profile):
        key, layer = ".".join(location), origin(values_from, location)
        selected = not section or key == section or key.startswith(f"{section}.")
        if selected and not (changed and layer == "default"):
            layer = layer if layer.startswith("--") else Path(layer).name
            table.add_row(key, _shown(value), layer)
            rows.append(
                {"setting": key, "value": ANYTHING.dump_python(value, mode="json"), "from": layer}
            )
    if not rows and section and not changed:
        keys = [".".join(location) for location, _ in leaves(settings.profile)]
        names = sorted({*keys, *(key.rpartition(".")[0] for key in keys)} - {""})
        near = difflib.get_close_matches(section, names, 1)
        hint = f"did you mean {near[0]}" if near else "`ratchet config show` lists all"
        raise ProfileError(f"no setting {section!r}: {hint}")
    if as_json:
        print_json(rows)
    elif not rows:
        console.print("all values are defaults")
    else:
        console.print(table, soft_wrap=not console.is_terminal)
    return 0


def leaves(settings: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (location, value) of every setting that is not a section, in the order of its class."""
    if isinstance(settings, BaseModel):
        names = list(type(settings).model_fields)
    elif is_dataclass(settings):
        names = [field.name for field in fields(settings)]
    else:
        yield path, settings
        return
    for name in names:
        yield from leaves(getattr(settings, name), (*path, name))


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


COMMAND = Command("Run", app)
