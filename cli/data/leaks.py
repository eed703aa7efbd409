"""`ratchet data leaks`: which rows of a training file leak which benchmark task, and why."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from artifacts.atomic import write_atomic
from cli.lookup.damage import FILES_ARE_DAMAGED
from pipelines.watch.text import print_text
from pipelines.watch.view import StageRow
from problems.columns import ProblemError
from resources.progress import Line
from resources.settings import Settings

if TYPE_CHECKING:
    from problems.cleaning.leaks import Leak
    from problems.schema import Problem

MAX_ROWS = 20
EVERY_S = 5.0  # seconds between two lines of progress


def data_leaks(
    path: Path,
    benchmarks: Sequence[str],
    *,
    data: Path | None,
    columns: str,
    out: Path | None,
    settings: Settings,
    console: Console,
) -> int:
    """Print a table of the findings, and write each as a JSON line to `out`.

    Returns 1 if a row leaks, else 2 if a row could not be read; each of these is named on stderr.
    Raises ProblemError and FileNotFoundError.
    """
    from problems.cleaning.leaks import find_leaks
    from problems.reading.mapping import pairs
    from problems.reading.place import Place
    from problems.training_file import read_training_file
    from sandbox.sandbox import Sandbox

    place = Place(columns=pairs(filter(None, columns.split(","))))
    problems, rejected = read_training_file(path, place)
    for row in rejected:
        print(f"skipped: {row.row}: {row.reason}: {row.fix}", file=sys.stderr)
    if not problems:
        raise ProblemError(
            f"none of {len(rejected)} rows could be read",
            "fix the file, or name its columns with --columns statement=prompt,...",
            str(path),
        )
    gated = [
        problem for name in benchmarks for problem in gated_tasks(name, data, settings.home.path)
    ]
    with Sandbox(settings.profile.sandbox) as sandbox:
        findings = find_leaks(
            problems,
            gated,
            sandbox,
            settings.profile.curation.sentence_model,
            settings.home.path / "leaks.jsonl",
            _progress(),
        )
    if out:
        lines = [json.dumps(asdict(finding), ensure_ascii=False) for finding in findings]
        write_atomic(out, "".join(f"{line}\n" for line in lines))
    console.print(_table(findings, MAX_ROWS if console.is_terminal else len(findings)))
    counts = Counter(finding.verdict for finding in findings)
    print_text(
        console,
        f"{len(findings)} rows against {len(gated)} tasks: {counts['leak']} leak, "
        f"{counts['suspect']} suspect, {counts['clean']} clean, {len(rejected)} skipped",
    )
    if counts["leak"]:
        return 1
    return FILES_ARE_DAMAGED if rejected else 0


def _progress() -> Callable[[int, int], None]:
    """Return a callback that prints the count and the time left on stderr, every few seconds."""
    row, printed_s = StageRow("rows"), time.monotonic()

    def on_progress(done: int, total: int) -> None:
        nonlocal printed_s
        row.count(Line(t=time.time(), stage="leaks", event="at", done=done, total=total))
        if time.monotonic() - printed_s > EVERY_S:
            printed_s = time.monotonic()
            print(f"rows compared: {row.progress}", file=sys.stderr, flush=True)

    return on_progress


def gated_tasks(name: str, data: Path | None, home: Path) -> list[Problem]:
    """Return the gated tasks of a benchmark: from a file, a folder of folders, or the home.

    Raises ProblemError and FileNotFoundError.
    """
    from evaluation.benchmarks.registry import opened, published

    place = data
    if data and data.is_dir() and name in published():
        source = published()[name].source.name
        folders = [data / folder for folder in (name, source, source.split("_")[0])]
        place = next((folder for folder in folders if folder.is_dir()), data)
    tasks = [problem for problem in opened(name, place, home).problems if problem.gated]
    if not tasks:
        raise ProblemError(
            f"no task of {name} is for evaluation only", "name the file of its test split", "--data"
        )
    return tasks


def _table(findings: Iterable[Leak], most: int) -> Table:
    table = Table("row", "verdict", "task", "why", "evidence", title="Leaks and suspects")
    rows = sorted(
        (finding for finding in findings if finding.verdict != "clean"),
        key=lambda finding: finding.verdict,
    )
    for finding in rows[:most]:
        cells = (finding.problem_id, finding.verdict, finding.gated_id, finding.kind)
        table.add_row(*map(Text, (*cells, finding.evidence[:160])))
    if len(rows) > most:
        table.add_row(f"… and {len(rows) - most} more", "", "", "", "")
    return table
