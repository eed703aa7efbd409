"""Propose time and memory limits from the measured reference solutions."""

from __future__ import annotations

from rich.console import Console
from rich.markdown import Markdown

from cli.data.show import READS
from pipelines.watch.text import print_text
from resources.home import NotReady
from resources.settings import Settings


def data_limits(apply: bool, settings: Settings, console: Console) -> int:
    """Print the savings of limits derived from the references. apply: use them in the next version
    of the datasets. Raises NotReady before a first run.
    """
    from problems.schema import read_parquet
    from problems.verification.chosen_limits import write_choice
    from problems.verification.limits import changes, proposals, read, read_limits, savings

    home = settings.home
    store = settings.store
    raw, verified = (
        store.current("datasets", name) for name in ("raw_problems", "verified_problems")
    )
    if raw is None or verified is None:
        raise NotReady(f"no references have been measured yet: {READS} measures them")
    rows = read(verified.path)
    source = raw.path / "problems.parquet"
    console.print(Markdown(savings(read_limits(verified.path / "problems.parquet"), rows)))
    count = sum(1 for _ in changes(read_limits(source), rows))
    text = (
        f"{len(rows)} problems have measured references; {count} of the trainable ones would "
        "get other limits than those of their source"
    )
    if apply:
        choice = proposals(read_parquet(source), rows)
        text += (
            f". Recorded in {write_choice(home.path, choice)}: {READS} uses them. "
            "Remove that file to undo this"
        )
    print_text(console, f"{text}.")
    return 0
