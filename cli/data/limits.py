"""Propose time and memory limits from the measured reference solutions."""

from __future__ import annotations

from rich.console import Console

from cli.data.show import READS
from cli.display.screen import print_markdown
from pipelines.watch.text import print_text
from resources.home import NotReady
from resources.settings import Settings


def data_limits(apply: bool, settings: Settings, console: Console) -> int:
    """Print the savings of limits derived from the references. apply: use them in the next version
    of the datasets. Raises NotReady before a first run, and if `raw_problems` changed since.
    """
    from problems.stored import stored_problems
    from problems.verification.chosen_limits import write_choice
    from problems.verification.limits import proposals, read, savings

    home = settings.home
    store = settings.store
    raw, verified = (
        store.current("datasets", name) for name in ("raw_problems", "verified_problems")
    )
    if raw is None or verified is None:
        raise NotReady(f"no references have been measured yet: {READS} measures them")
    if verified.manifest.inputs["raw_problems"] != raw.content_hash:
        raise NotReady(
            "the references were measured on an earlier version of raw_problems: run `ratchet data "
            "build`, which measures them again"
        )
    rows = read(verified.path)
    print_markdown(console, savings(stored_problems(verified.path), rows))
    choice = proposals(stored_problems(raw.path), rows)
    text = (
        f"{len(rows):,} problems have measured references; {len(choice):,} of the trainable ones "
        "would get other limits than those of their source"
    )
    if apply:
        text += (
            f". Recorded in {write_choice(home.path, choice)}: {READS} uses them. "
            "Remove that file to undo this"
        )
    print_text(console, f"{text}.")
    return 0
