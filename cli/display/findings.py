"""Findings as a table: what is well, what could be better, and what is not."""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table

from resources.finding import Finding


def finding_table(findings: Iterable[Finding]) -> Table:
    """Return a line for each part, with what to do about it."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        state = "[red]no[/]" if finding.blocks else "[yellow]![/]" if finding.fix else "ok"
        fix = f"\n→ {escape(finding.fix)}" if finding.fix else ""
        table.add_row(state, finding.part, escape(finding.found) + fix)
    return table
