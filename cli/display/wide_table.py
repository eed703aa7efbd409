"""Print tables that keep all figures on a narrow terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import HEAVY_HEAD, Box
from rich.console import Console
from rich.table import Table

UNBOUNDED = 10_000  # columns


def print_wide(
    rows: Sequence[Mapping[str, str]], console: Console, box: Box | None = HEAVY_HEAD
) -> None:
    """Print rows (cells by heading) as a table, or as blocks of lines if it is too wide."""
    table = Table(*rows[0], box=box, header_style="dim" if box is None else "table.header")
    for row in rows:
        table.add_row(*row.values())
    options = console.options.update(max_width=UNBOUNDED)
    if console.measure(table, options=options).maximum <= console.width:
        console.print(table)
        return
    for row in rows:
        block = Table.grid(padding=(0, 2))
        for heading, cell in row.items():
            block.add_row(f"[dim]{heading}[/]", cell)
        console.print(block, "")
