"""Propose time and memory limits from what the reference solutions took."""

from __future__ import annotations

from rich.console import Console
from rich.markdown import Markdown

from cli.data.show import READS
from resources.home import NotReady
from resources.settings import Settings


def data_limits(apply: bool, settings: Settings, console: Console) -> int:
    """Print what limits learned from the references would save; `apply` chooses them for the next
    version of the data.
    """
    from problems.schema import read_parquet
    from problems.verification.chosen_limits import write_choice
    from problems.verification.limits import proposals, read, savings

    home = settings.home
    store = settings.store
    raw, verified = (
        store.current("datasets", name) for name in ("raw_problems", "verified_problems")
    )
    if raw is None or verified is None:
        raise NotReady(f"no references have been tried yet: the first run does that: {READS}")
    rows = read(verified.path)
    choice = proposals(read_parquet(raw.path / "problems.parquet"), rows)
    console.print(Markdown(savings(read_parquet(verified.path / "problems.parquet"), rows)))
    text = (
        f"{len(rows)} problems with measured references, {len(choice)} that may be trained on "
        "would have other limits than their source gives them"
    )
    if apply:
        text += (
            f". Chosen: {write_choice(home.path, choice)}; the next run verifies and writes the "
            f"data with them ({READS}). Remove that file to take it back"
        )
    console.print(f"{text}.", soft_wrap=True, highlight=False)
    return 0
