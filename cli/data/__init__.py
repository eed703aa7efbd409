"""Add sources of problems, and look at the datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.options import ProfileOption
from resources.settings import Settings

GROUP = "Data"
app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)


@app.command("add")
def data_add(
    name: Annotated[
        str,
        typer.Argument(help="A known source (docs/explanation/sources.md), or a name of your own."),
    ],
    path: Annotated[
        Path | None,
        typer.Option(
            help=(
                "File or folder; with neither this nor --hub a known source's own dataset on the "
                "hub."
            )
        ),
    ] = None,
    hub: Annotated[
        str | None, typer.Option(help="A dataset on the Hugging Face hub: owner/name.")
    ] = None,
    config: Annotated[str | None, typer.Option(help="Configuration of the hub's dataset.")] = None,
    revision: Annotated[
        str | None,
        typer.Option(help="Branch, tag or commit of the hub's dataset; else its main branch."),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(
            help="What our columns are called there: statement=prompt,solutions=answer,..."
        ),
    ] = "",
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A column's value in all rows: --set style=call; repeat it for more."
        ),
    ] = None,
) -> None:
    """Add a source of problems; every bad row is reported."""
    from cli.data.sources import add

    home = Settings.read().home
    raise typer.Exit(add(name, path, hub, config, revision, columns, values or [], home, Console()))


@app.command("remove")
def data_remove(name: Annotated[str, typer.Argument(help="A source that was added.")]) -> None:
    """Remove a source of problems; its files stay."""
    from cli.data.sources import remove

    raise typer.Exit(remove(name, Settings.read().home, Console()))


@app.command("show")
def data_show(
    problem: Annotated[
        str | None, typer.Argument(help="Id of one problem, to see it whole.")
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Show the datasets and what each stage removed, or one problem with its history."""
    from cli.data.show import show

    raise typer.Exit(show(problem, Settings.read(profile), Console()))


@app.command("diff")
def data_diff(
    before: Annotated[
        str, typer.Argument(help="previous, current, or the beginning of a dataset's content hash.")
    ] = "previous",
    after: Annotated[str, typer.Argument(help="The same for the newer one.")] = "current",
    profile: ProfileOption = None,
) -> None:
    """Compare two versions of a dataset: added, removed (and why), changed."""
    from cli.data.show import diff

    raise typer.Exit(diff(before, after, Settings.read(profile), Console()))


@app.command("clean")
def data_clean(
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="Parquet in our schema: a file or a folder, a path or a URL (s3://bucket/prefix).",
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--to", help="Folder for the result, a path or a URL; started again, it goes on there."
        ),
    ],
    gated: Annotated[
        list[Path] | None,
        typer.Option(
            "--gated", help="Parquet of benchmarks that guard beside those of the set itself."
        ),
    ] = None,
    ray: Annotated[
        str,
        typer.Option(
            "--ray",
            help="Ray cluster to spread over: host:port, or auto; without it all is done here.",
        ),
    ] = "",
    profile: ProfileOption = None,
) -> None:
    """Verify and curate a set too large for one machine, part by part."""
    from cli.data.clean import data_clean

    raise typer.Exit(
        data_clean(source, target, gated or [], ray, Settings.read(profile), Console())
    )


@app.command("limits")
def data_limits(
    apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="Choose the proposed limits for the next version of the data."
        ),
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Propose limits from what the reference solutions took."""
    from cli.data.limits import data_limits

    raise typer.Exit(data_limits(apply, Settings.read(profile), Console()))
