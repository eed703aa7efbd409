"""`ratchet data add`: a source of problems read once, so that bad rows are named here and not at night, and noted in the home."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from pipelines.data_commands import READS
from problems.record import ProblemError
from resources.home import Home


def add(
    name: str, path: Path | None, hub: str | None, config: str | None, revision: str | None, columns: str, values: list[str], console: Console
) -> int:
    """Of the hub, the commit is noted that the revision has now. Raises ProblemError when no row could be read, or the hub does not answer."""
    from problems.catalogue import add_source, asked, checked
    from problems.sources.mapping import constant, pairs
    from problems.sources.place import Place
    from problems.sources.registry import load

    home = Home.from_environment()
    home.make()
    constants = {ours: constant(value) for ours, value in pairs(values).items()}
    place = checked(name, Place(path, hub, config, revision, None, pairs(filter(None, columns.split(","))), constants))
    if place.path is None:
        place = replace(place, commit=asked(name, place))
    loaded = load(name, place)
    for bad in loaded.rejected[:20]:
        console.print(f"left out: {bad.row}: {bad.reason}: {bad.mend}", style="yellow", soft_wrap=True, highlight=False)
    if len(loaded.rejected) > 20:
        console.print(f"... and {len(loaded.rejected) - 20} more", style="yellow")
    if not loaded.problems:
        raise ProblemError(
            f"none of {loaded.rows} rows could be read", "mend the file, or say what its columns are (--columns, --set)", f"{name} ({place})"
        )
    add_source(home.path, name, place)
    gated = sum(problem.gated for problem in loaded.problems)
    console.print(
        f"{name} ({place}): {len(loaded.problems)} problems, {gated} of them gated (for evaluation only), {len(loaded.rejected)} rows left out; "
        f"the next run reads them: {READS}",
        highlight=False,
        soft_wrap=True,
    )
    return 0
