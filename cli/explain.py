"""Explain why a version was promoted."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    VersionArgument,
)
from cli.display.outcome import outcome
from cli.display.screen import screen
from evaluation.promotion.required_sample_size import required_for_promotion
from evaluation.promotion.summary import decision_summary
from pipelines.watch.text import print_text
from resources.registry.ledger import Entry, champions, named
from resources.registry.versions import find
from resources.settings import Settings

WIDTH = 50  # characters from 0 to 100 %
LEGEND = (
    "won, lost: tasks that only the challenger, only the champion solves. p better, p worse: "
    "probability that two equally good models differ by as much or more in this direction. "
    "95 %: confidence interval."
)
REGRESSION = " regression: tasks that a champion solved and a later champion failed."


def explain(version: str, settings: Settings, console: Console) -> int:
    """Explain why a version became champion. If it never did, explain why not and return 1.

    Raises UnknownVersion.
    """
    history = settings.history
    entries = find(history, version)
    if not (promotions := [entry for entry in entries if entry.kind != "refuse"]):
        console.print(f"{named(entries[-1])} was never promoted. Why not:", style="bold")
        show_refusal(entries[-1], history, console)
        return 1
    _show(promotions[-1], history, console)
    return 0


def _show(entry: Entry, history: list[Entry], console: Console) -> None:
    now = champions(history)[-1].version == entry.version
    state = "champion now" if now else "not champion now"
    head = (
        f"{named(entry)}: {outcome(history, entry)} on {entry.created_at[:10]}, entry "
        f"{entry.entry} of the ledger; {state}."
    )
    print_text(console, head, style="bold")
    if "policy" in entry.decision:
        print_text(console, f"{decision_summary(entry.decision)}\n")
    print_text(console, "\n".join(f"- {reason}" for reason in entry.decision.get("reasons", [])))
    if comparisons := _comparisons(entry.decision):
        console.print()
        console.width = max(console.width, 120)
        console.print(_numbers(comparisons))
        print_text(
            console,
            LEGEND
            + (REGRESSION if any(c["benchmark"] == "regression" for c in comparisons) else ""),
            style="dim",
        )
        for compared in comparisons:
            print_text(console, f"\n{picture(compared)}")
    console.print(
        f"\nIts inputs: `ratchet provenance {entry.version}`",
        style="dim",
        highlight=False,
    )


def show_refusal(entry: Entry, history: list[Entry], console: Console) -> None:
    """Print a refusal with its numbers, and what a promotion would have required."""
    _show(entry, history, console)
    if required := required_for_promotion(entry.decision):
        console.print("\nRequired for a promotion, all of it:", style="bold")
        print_text(console, "\n".join(f"- {sentence}" for sentence in required))


def _comparisons(decision: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        compared
        for compared in [decision.get("comparison"), *decision.get("others", [])]
        if compared
    ]


def _numbers(comparisons: list[dict[str, Any]]) -> Table:
    table = Table(
        "benchmark",
        "champion",
        "challenger",
        "difference (95 %)",
        "won",
        "lost",
        "p better",
        "p worse",
        box=None,
        header_style="bold",
    )
    for c in comparisons:
        difference = (
            f"{_points(c['difference'])} ({_points(c['difference_low'])} to "
            f"{_points(c['difference_high'])})"
        )
        shares = [
            f"{100 * c[side]['share']:.1f} % of {c[side]['tasks']}" for side in ("before", "after")
        ]
        table.add_row(
            c["benchmark"],
            *shares,
            difference,
            str(len(c["won"])),
            str(len(c["lost"])),
            f"{c['p_better']:.2g}",
            f"{c['p_worse']:.2g}",
        )
    return table


def picture(compared: dict[str, Any]) -> str:
    """Draw both pass rates with their intervals, a line each, from 0 to 100 %."""
    lines = [f"{compared['benchmark']:<12}{'0 %':<{WIDTH - 4}}100 %"]
    for role, side in (("champion", "before"), ("challenger", "after")):
        rate = compared[side]
        low, at, high = (
            min(round(rate[key] * WIDTH), WIDTH - 1) for key in ("low", "share", "high")
        )
        line = ["·"] * WIDTH
        line[low : high + 1] = ["─"] * (high - low + 1)
        line[at] = "●"
        lines.append(f"{role:<12}{''.join(line)}  {100 * rate['share']:.1f} %")
    return "\n".join(lines)


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def command(version: VersionArgument = "champion", profile: ProfileOption = None) -> None:
    """Explain why a version was promoted.

    Exits 1 if it was not promoted.
    """
    raise typer.Exit(explain(version, Settings.read(profile), screen()))


COMMAND = Command("Promote and explain", command)
