"""The summary at the end of a run: champion, challenger, decision, duration, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from artifacts.integrity import reading
from evaluation.promotion.method_names import name_of_test
from evaluation.promotion.summary import decision_summary
from pipelines.watch.text import print_text
from resources.run_record import RunRecord

HEAD = {
    "promote": ("green", "PROMOTED"),
    "refuse": ("yellow", "NOT PROMOTED"),
    "install": ("green", "INSTALLED"),
}


def show(report: Path, record: RunRecord, console: Console) -> None:
    """Print the summary of a run. report: the folder with `summary.json` and `index.html`.

    Raises CorruptArtifact for a damaged `summary.json`.
    """
    file = report / "summary.json"
    with reading(file, f"`ratchet explain {record.id}` shows the decision"):
        decision: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["decision"]
    colour, verdict = HEAD[decision["kind"]]
    rows: list[tuple[str, str]] = []
    if compared := decision["comparison"]:
        for role, rate in (("champion", "before"), ("challenger", "after")):
            score = _rate(compared[rate], compared.get("k", 1), compared["benchmark"])
            rows.append((role, f"{score}  {decision[role]['name']}"))
        test = name_of_test(compared)
        rows.append(("p-value", f"{compared['p_better']:.2g} ({test}, one-sided)"))
    memory = f"peak memory {record.peak_pss_gib:.1f} GiB"
    rows += [
        ("summary", decision_summary(decision)),
        *zip(["reasons", *[""] * len(decision["reasons"])], decision["reasons"], strict=False),
        ("took", f"{record.took_minutes:.1f} minutes, {memory}"),
    ]
    title = f"[bold {colour}]{verdict}[/] · {record.id}"
    if console.is_terminal:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column()
        for row in rows:
            table.add_row(*row)
        console.print(Panel(table, title=title, border_style=colour, padding=(1, 2)))
    else:
        print_text(console, title)
        for name, text in rows:
            print_text(console, f"{name:<10} {text}")
    print_text(console, f"Report: {report / 'index.html'}")


def _rate(rate: dict[str, Any], k: int, benchmark: str) -> str:
    interval = f"{100 * rate['low']:.1f} to {100 * rate['high']:.1f} %"
    solved = "" if rate.get("solved") is None else f"{rate['solved']} of "
    return (
        f"pass@{k} {100 * rate['share']:5.1f} %  ({interval}, {solved}{rate['tasks']} tasks of "
        f"{benchmark})"
    )
