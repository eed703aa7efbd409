"""List benchmarks, and install the packages that their programs import."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import JsonOption
from cli.display.screen import print_json, screen
from cli.lookup.damage import Damage
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.package_set import PackageSet, size_of
from evaluation.benchmarks.published import Published
from evaluation.benchmarks.registry import load_public, published
from problems.catalogue import read_sources
from problems.columns import ProblemError
from problems.reading.place import Place
from resources.home import Home, NotReady

NEEDED_GIB = 3.0  # for the packages and pip's temporary files

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def show(as_json: JsonOption = False) -> None:
    """List the benchmarks with their data and packages, or the commands that add these."""
    home, console, damage = Home.from_environment(), screen(), Damage()
    places: dict[str, Place] = {}
    with damage.collected():
        places = read_sources(home.path)
    rows = []
    for name, each in published().items():
        place = places.get(each.source.name)
        data = str(place.path or place.hub) if place else f"ratchet data add {each.source.name}"
        state = "damaged"
        with damage.collected():
            state = _state(name, each.packages, home.path)
        rows.append({"name": name, "data": data, "packages": state})
    if as_json:
        print_json(rows)
    else:
        table = Table(title="benchmarks", title_justify="left", box=None)
        for heading in rows[0]:
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*row.values())
        console.print(table)
    raise typer.Exit(damage.exit_code())


@app.command()
def install(name: Annotated[str, typer.Argument(help="Name of a benchmark.")]) -> None:
    """Install the packages that a benchmark's programs import into a folder of the home.

    The versions are pinned and checked by their hashes. A second call installs nothing.
    """
    home, console = Home.from_environment(), Console(soft_wrap=True, highlight=False)
    benchmark = _published(name)
    home.make()
    if not benchmark.packages.installed(home.path):  # type: ignore[union-attr]
        home.check_capacity(disk_gib=NEEDED_GIB, memory_gib=0)
    console.print(install_packages(benchmark, home.path))


def install_packages(benchmark: Published, home: Path) -> str:
    """Install a benchmark's packages and return a summary. Raises NotReady if pip fails."""
    packages = benchmark.packages
    assert packages
    start = time.monotonic()
    try:
        folder = packages.install(home)
    except subprocess.CalledProcessError as error:
        errors = [line for line in str(error.stdout).splitlines() if "ERROR" in line]
        raise NotReady(
            f"{packages.pins.name}: pip cannot install it: "
            f"{(errors or [f'exit code {error.returncode}'])[0][:300]}: it needs CPython 3.11 on "
            "Linux x86-64, and a package registry"
        ) from error
    lines = [
        f"{len(packages.versions)} packages, {size_of(folder) / 1e9:.1f} GB, "
        f"{time.monotonic() - start:.0f} s: {folder}"
    ]
    place = read_sources(home).get(benchmark.source.name)
    opened = load_public(benchmark.name, place, home)
    if isinstance(opened, Benchmark):
        tasks = opened.harness.tasks
        absent = {why for task in tasks.values() if (why := opened.harness.absent(task))}
        count = sum(not opened.harness.absent(task) for task in tasks.values())
        reasons = f"; the others: {', '.join(sorted(absent))}" if absent else ""
        lines.append(f"{count} of {len(tasks)} tasks can be measured{reasons}")
    return "\n".join(lines)


def _published(name: str) -> Published:
    """Return a benchmark that has packages. Raises ProblemError if this one has none."""
    with_packages = {each: one for each, one in published().items() if one.packages}
    if name not in with_packages:
        raise ProblemError(
            f"{name!r} has no packages to install",
            f"these have: {', '.join(with_packages)}",
            "ratchet benchmarks install",
        )
    return with_packages[name]


def _state(name: str, packages: PackageSet | None, home: Path) -> str:
    if packages is None:
        return ""
    folder = packages.installed(home)
    return f"{size_of(folder) / 1e9:.1f} GB" if folder else f"ratchet benchmarks install {name}"


COMMAND = Command("Evaluate", app)
