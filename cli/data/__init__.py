"""Add sources of problems, and show, compare and clean datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption, SetOption
from cli.display.screen import screen
from cli.evaluate import options as evaluate_options
from resources.settings import Settings

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)


@app.command("add")
def data_add(
    name: Annotated[
        str,
        typer.Argument(help="A known source (docs/explanation/sources.md), or a name of your own."),
    ],
    *,
    path: Annotated[
        Path | None,
        typer.Option(
            help=("File or folder. Without --path and --hub: the hub dataset of a known source.")
        ),
    ] = None,
    hub: Annotated[
        str | None, typer.Option(help="Dataset on the Hugging Face hub: owner/name.")
    ] = None,
    config: Annotated[str | None, typer.Option(help="Configuration of the hub dataset.")] = None,
    revision: Annotated[
        str | None,
        typer.Option(help="Branch, tag or commit of the hub dataset. Default: its main branch."),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(
            help="Names of the columns in the source: statement=prompt,solutions=answer,..."
        ),
    ] = "",
    values: Annotated[
        list[str] | None,
        typer.Option("--set", help="A column's value in all rows: --set style=call; repeatable."),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            help="A model's programs, a JSON line each: problem_id, completion. They verify "
            "problems without a reference."
        ),
    ] = None,
) -> None:
    """Add a source of problems; every bad row is reported."""
    from cli.data.sources import add
    from problems.reading.mapping import constant, pairs
    from problems.reading.place import Place

    constants = {column: constant(value) for column, value in pairs(values or []).items()}
    names = pairs(filter(None, columns.split(",")))
    place = Place(
        path=path,
        hub=hub,
        config=config,
        revision=revision,
        commit=None,
        columns=names,
        constants=constants,
        samples=samples,
    )
    raise typer.Exit(add(name, place, Settings.read().home, screen()))


@app.command("sources")
def data_sources(as_json: JsonOption = False) -> None:
    """List the known sources of problems, and those that were added."""
    from cli.data.sources import known_sources

    raise typer.Exit(known_sources(Settings.read().home, screen(), as_json=as_json))


@app.command("build")
def data_build(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files of problems, added as sources first: JSON lines, JSON, CSV or Parquet."
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(help="Folder for a copy of the dataset, by path or URL (s3://bucket/prefix)."),
    ] = "",
    profile: ProfileOption = None,
    change: SetOption = None,
) -> None:
    """Make the dataset without training: read, verify and clean all sources of the home.

    A repeated command resumes.
    """
    from cli.data.build import data_build

    settings = Settings.read(profile, change or [])
    raise typer.Exit(data_build(files or [], out, settings, screen()))


@app.command("sample")
def data_sample(
    name: Annotated[str, typer.Argument(help="Name of an added source.")],
    *,
    model: evaluate_options.ModelOption = None,
    endpoint: evaluate_options.EndpointOption = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Samples for each problem.")] = 8,
    temperature: evaluate_options.TemperatureOption = 0.8,
    top_p: evaluate_options.TopPOption = 0.95,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of a sample.")] = 1024,
    seed: evaluate_options.SeedOption = 0,
    form: evaluate_options.FormOption = evaluate_options.Form.auto,
    out: Annotated[
        Path | None, typer.Option(help="File for the samples. Default: one in the home.")
    ] = None,
) -> None:
    """Let a model write programs for the problems of a source that have no reference.

    If enough of them agree under a problem's tests, the problem is kept.
    """
    from cli.data.sample import data_sample
    from cli.evaluate.completions import source_of
    from evaluation.sampling import Sampling

    if not (model or endpoint):
        raise typer.BadParameter("give --model, or --endpoint with --model")
    sampling = Sampling(
        n=n, temperature=temperature, top_p=top_p, max_new_tokens=max_new_tokens, seed=seed
    )
    home = Settings.read().home
    source = source_of(model or "", endpoint or "", form.value, home.path)
    raise typer.Exit(data_sample(name, source, sampling, out, home, screen()))


@app.command("production")
def data_production() -> None:
    """Make the source `production` of requests that the gateway could not solve.

    Only those of API keys that consent (`ratchet keys add --consent`). Run it again for new ones.
    """
    from cli.data.production import data_production

    raise typer.Exit(data_production(Settings.read().home, screen()))


@app.command("remove")
def data_remove(name: Annotated[str, typer.Argument(help="Name of an added source.")]) -> None:
    """Remove a source of problems; its files stay."""
    from cli.data.sources import remove

    raise typer.Exit(remove(name, Settings.read().home, screen()))


@app.command("show")
def data_show(
    problem: Annotated[
        str | None, typer.Argument(help="Id of a problem, to show it in full.")
    ] = None,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Show the datasets and what each stage removed, or one problem with its history."""
    from cli.data.show import show

    raise typer.Exit(show(problem, Settings.read(profile), screen(), as_json=as_json))


@app.command("diff")
def data_diff(
    before: Annotated[
        str, typer.Argument(help="previous, current, or the beginning of a dataset's hash.")
    ] = "previous",
    after: Annotated[str, typer.Argument(help="The newer version, in the same form.")] = "current",
    profile: ProfileOption = None,
) -> None:
    """Compare two versions of a dataset: added, removed (and why), changed."""
    from cli.data.show import diff

    raise typer.Exit(diff(before, after, Settings.read(profile), screen()))


@app.command("clean")
def data_clean(
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="Problems as parquet in Ratchet's schema, or as JSON lines, JSON or CSV: a file "
            "or folder, by path or URL (s3://bucket/prefix).",
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--out", help="Folder for the result, by path or URL; a repeated command resumes there."
        ),
    ],
    gated: Annotated[
        list[Path] | None,
        typer.Option("--gated", help="Parquet of more gated problems, beside those of the set."),
    ] = None,
    ray: Annotated[
        str,
        typer.Option(
            "--ray",
            help="Ray cluster: host:port, or auto. Default: this machine.",
        ),
    ] = "",
    profile: ProfileOption = None,
) -> None:
    """Verify and clean a large set of problems in parts, here or on a Ray cluster."""
    from cli.data.clean import data_clean

    raise typer.Exit(data_clean(source, target, gated or [], ray, Settings.read(profile), screen()))


@app.command("leaks")
def data_leaks(
    path: Annotated[
        Path,
        typer.Argument(help="Training file: JSON, JSON lines, CSV, Parquet; tests may be absent."),
    ],
    benchmark: Annotated[
        list[str], typer.Option("--benchmark", help="Name of a benchmark; repeatable.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="File of the benchmark, or a folder with one folder for each. Default: the added "
            "sources."
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Names of the columns in the file: statement=prompt,...")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="File for the findings, a JSON line for each row.")
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Report which rows of a training file leak a benchmark task, why and how surely.

    Exits with 1 if a row leaks, else with 2 if a row could not be read.
    """
    from cli.data.leaks import data_leaks

    settings = Settings.read(profile)
    raise typer.Exit(
        data_leaks(
            path,
            benchmark,
            data=data,
            columns=columns,
            out=out,
            settings=settings,
            console=screen(),
        )
    )


@app.command("limits")
def data_limits(
    apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="Use the proposed limits in the next version of the datasets."
        ),
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Propose time and memory limits from the measured reference solutions."""
    from cli.data.limits import data_limits

    raise typer.Exit(data_limits(apply, Settings.read(profile), screen()))


COMMAND = Command("Data", app)
