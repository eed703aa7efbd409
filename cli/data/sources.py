"""`ratchet data add` and `ratchet data remove`: a source is read once, so that bad rows are
reported at once, and recorded in the home.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from cli.data.show import READS
from problems.columns import ProblemError
from resources.home import Home


def add(
    name: str,
    path: Path | None,
    hub: str | None,
    config: str | None,
    revision: str | None,
    columns: str,
    values: list[str],
    home: Home,
    console: Console,
) -> int:
    """Add a source; for the hub, with the commit that the revision has now. Raises ProblemError if
    no row can be read, or the hub does not answer.
    """
    from problems.catalogue import add_source, current_commit, validated
    from problems.sources.mapping import constant, pairs
    from problems.sources.own import overlooked
    from problems.sources.place import Place
    from problems.sources.registry import SOURCES, load

    home.make()
    constants = {ours: constant(value) for ours, value in pairs(values).items()}
    place = validated(
        name,
        Place(
            path, hub, config, revision, None, pairs(filter(None, columns.split(","))), constants
        ),
    )
    if place.path is None:
        place = replace(place, commit=current_commit(name, place))
    loaded = load(name, place)
    for bad in loaded.rejected[:20]:
        console.print(
            f"left out: {bad.row}: {bad.reason}: {bad.fix}",
            style="yellow",
            soft_wrap=True,
            highlight=False,
        )
    if len(loaded.rejected) > 20:
        console.print(f"... and {len(loaded.rejected) - 20} more", style="yellow")
    if not loaded.problems:
        raise ProblemError(
            f"none of {loaded.rows} rows could be read",
            "fix the file, or say what its columns are (--columns, --set)",
            f"{name} ({place})",
        )
    near = (
        Counter(pair for problem in loaded.problems for pair in overlooked(problem))
        if name not in SOURCES
        else {}
    )
    for (key, column), count in near.items():
        warning = (
            f"{count} rows have a key {key!r} that is no column: did you mean {column}? As it is, "
            "it is kept in extra"
        )
        console.print(f"warning: {warning}", style="yellow", soft_wrap=True, highlight=False)
    add_source(home.path, name, place)
    gated = sum(problem.gated for problem in loaded.problems)
    console.print(
        f"{name} ({place}): {len(loaded.problems)} problems, {gated} of them gated (for "
        f"evaluation only), {len(loaded.rejected)} rows left out; "
        f"the next run reads them: {READS}",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def remove(name: str, home: Home, console: Console) -> int:
    """Forgets a source. Raises ProblemError when it was never added."""
    from problems.catalogue import remove_source

    remove_source(home.path, name)
    console.print(
        f"{name} is forgotten, its files stay; the next run reads the problems without it: {READS}",
        highlight=False,
        soft_wrap=True,
    )
    return 0
