"""`ratchet data add` and `ratchet data remove`: read a source once to report its bad rows, and
record it in the home.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from cli.data.show import READS
from cli.display.screen import print_json
from pipelines.watch.text import print_text
from problems.columns import ProblemError
from resources.home import Home

if TYPE_CHECKING:
    from problems.reading.place import Place
    from problems.reading.source import LoadedRows

MAX_ROWS = 20


def add(name: str, place: Place, home: Home, console: Console) -> int:
    """Add a source. A hub dataset is pinned to the current commit of its revision.

    Raises ProblemError if no row can be read, or the hub does not answer.
    """
    from problems.catalogue import add_source, current_commit, validated

    home.make()
    place = validated(name, place)
    if place.path is None:
        place = replace(place, commit=current_commit(name, place))
    loaded = read(name, place, console)
    add_source(home.path, name, place)
    gated = sum(problem.gated for problem in loaded.problems)
    print_text(
        console,
        f"{name} ({place}): {len(loaded.problems)} problems, {gated} of them gated (for "
        f"evaluation only), {len(loaded.rejected)} rows skipped; {READS} reads the problems. "
        "This starts no training unless you switch on the sensor `changed_problems` in Dagster",
    )
    return 0


def read(name: str, place: Place, console: Console) -> LoadedRows:
    """Read a source and print its bad rows. Raises ProblemError if no row can be read."""
    from problems.reading.own import overlooked
    from problems.sources.registry import SOURCES, load, recognized

    loaded = load(name, place)
    _print_rejected(loaded, console)
    if not loaded.problems:
        fix = "fix the file, or name its columns with --columns and --set"
        if name in SOURCES and place.path:
            fix = f"{name} is a known source; problems of your own get another name"
        if place.path and (found := recognized(place.path)) not in (None, name):
            fix = f"they are those of {found}: run `ratchet data add {found} --path {place.path}`"
        reason = f"none of {len(loaded.rejected)} rows could be read"
        raise ProblemError(reason, fix, f"{name} ({place})")
    if name not in SOURCES:
        similar = Counter(pair for problem in loaded.problems for pair in overlooked(problem))
        for (key, column), count in similar.items():
            warning = f"{count} rows have an unknown key {key!r}, stored in extra: is it {column}?"
            print_text(console, f"warning: {warning}", style="yellow")
    return loaded


def _print_rejected(loaded: LoadedRows, console: Console) -> None:
    """Print the first rejected rows with reason and fix."""
    for row in loaded.rejected[:MAX_ROWS]:
        console.print(
            f"skipped: {row.row}: {row.reason}: {row.fix}",
            style="yellow",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )
    if (more := len(loaded.rejected) - MAX_ROWS) > 0:
        console.print(f"... and {more} more", style="yellow")


def known_sources(home: Home, console: Console, *, as_json: bool = False) -> int:
    """Print the known sources, and the published datasets whose rows need no option."""
    from problems.catalogue import read_sources
    from problems.shapes.registry import SHAPES
    from problems.sources.registry import SOURCES

    added = read_sources(home.path)
    lines = {name: f"{source.about} {source.hub_id or ''}" for name, source in SOURCES.items()}
    if as_json:
        print_json(
            [
                {"name": name, "about": lines.get(name), "added": added.get(name)}
                for name in lines | added
            ]
        )
        return 0
    for name in lines | added:
        place = f"added: {added[name]}" if name in added else ""
        print_text(console, f"{name:<15} {lines.get(name, 'your own')} {place}".rstrip())
    print_text(
        console,
        "\nAdd one with `ratchet data add NAME`, from a file with --path, or your own under a name "
        "of your choice.\nUnder any name, rows of these are read as they are published: "
        + "; ".join(sorted(shape.about for shape in SHAPES)),
    )
    return 0


def remove(name: str, home: Home, console: Console) -> int:
    """Remove a source from the home; its files stay. Raises ProblemError for an unknown source."""
    from problems.catalogue import remove_source

    remove_source(home.path, name)
    print_text(console, f"{name} is removed, its files stay; {READS} reads the problems without it")
    return 0
