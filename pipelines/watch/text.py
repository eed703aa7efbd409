"""Print text to a console as it is, so that a line of output is one line of a pipe."""

from __future__ import annotations

from rich.console import Console


def print_text(console: Console, text: object, *, style: str | None = None) -> None:
    """Print text without wrapping, and without colours for its numbers and paths."""
    console.print(text, style=style, highlight=False, soft_wrap=True)
