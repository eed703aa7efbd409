"""The console of a command's output."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from cli.display.wide_table import UNBOUNDED
from pipelines.watch.text import print_text


def screen() -> Console:
    """Return the console for stdout. Lines do not wrap in a pipe or a file."""
    return Console(width=None if sys.stdout.isatty() else UNBOUNDED)


def code(source: str, console: Console) -> RenderableType:
    """Return a program: in colors on a terminal, elsewhere as it is, without padding."""
    from rich.syntax import Syntax

    source = source.strip("\n")
    if not console.is_terminal:
        return Text(source)
    return Syntax(source, "python", background_color="default", word_wrap=True)


def print_heading(console: Console, title: str) -> None:
    """Print a heading in markup: a line across a terminal, elsewhere `# title`."""
    if console.is_terminal:
        console.rule(title, align="left", style="dim")
    else:
        print_text(console, f"# {title}")


def print_markdown(console: Console, text: str) -> None:
    """Print Markdown, rendered for a terminal; in a pipe as it is, without padding."""
    from rich.markdown import Markdown

    console.print(Markdown(text)) if console.is_terminal else print_text(console, text)


def print_json(value: Any) -> None:
    """Print a value as indented JSON; paths and dates as text."""
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))
