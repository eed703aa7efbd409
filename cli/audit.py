"""Audit a task set: find tasks that are broken, leak their answer, or pay for wrong solutions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption, SetOption
from cli.display.screen import print_json, screen
from cli.lookup.damage import FILES_ARE_DAMAGED
from pipelines.watch.text import print_text
from resources.settings import Settings

if TYPE_CHECKING:
    from problems.verification.settings import Verification
    from rewards.audit.findings import AuditedTask
    from sandbox.sandbox import Runs

FORMAT = 1  # of the JSON
MAX_EVIDENCE = 160  # characters in the table


@dataclass(frozen=True)
class Wanted:
    """What to audit, and how. only: names of tasks; none for all."""

    path: Path
    columns: str
    only: Sequence[str]
    files_only: bool
    seconds: float


def audit(wanted: Wanted, settings: Settings, console: Console, *, as_json: bool) -> int:
    """Print the findings. Return 1 if a task fails a check, else 2 if a row could not be read or
    the sandbox gave no verdict, else 0.

    Raises ProblemError and FileNotFoundError.
    """
    from problems.columns import ProblemError
    from problems.task_folders.needs import PYTEST
    from sandbox.sandbox import Sandbox

    config = settings.profile.sandbox
    with Sandbox(replace(config, packages=(*config.packages, *PYTEST))) as sandbox:
        isolation = sandbox.describe()
        tasks: list[AuditedTask] = []
        rejected: list[str] = []
        for task in _tasks(wanted, sandbox, rejected, settings.profile.verification):
            tasks.append(task)
            shown = "partly not run" if task.status == "skip" else task.status
            print(f"{len(tasks)}: {task.name}: {shown}", file=sys.stderr, flush=True)
    for line in rejected:
        print(f"skipped: {line}", file=sys.stderr)
    if not tasks:
        raise ProblemError(
            f"no task found, {len(rejected)} rows could not be read",
            "give a file of problems, or a folder with task.toml, task.yaml or openenv.yaml in it",
            str(wanted.path),
        )
    if as_json:
        facts = {"format": FORMAT, "source": str(wanted.path), "isolation": isolation}
        print_json(facts | {"rejected": rejected, "tasks": [task.to_json() for task in tasks]})
    else:
        _show(tasks, console)
        print_text(console, f"isolation {isolation}; {len(rejected)} rows skipped", style="dim")
    statuses = {finding.status for task in tasks for finding in task.findings}
    if "fail" in statuses:
        return 1
    return FILES_ARE_DAMAGED if rejected or "error" in statuses else 0


def _tasks(
    wanted: Wanted, sandbox: Runs, rejected: list[str], rules: Verification
) -> Iterator[AuditedTask]:
    """Yield the tasks of a file of rows, or of a folder. Rows that cannot be read: `rejected`."""
    from problems.reading.mapping import pairs
    from problems.reading.place import Place
    from problems.sources.registry import load, recognized
    from problems.task_folders.task_folder import find_tasks
    from rewards.audit.folders import audit_folders
    from rewards.audit.rows import audit_rows

    path = wanted.path
    if path.is_dir() and next(find_tasks(path), None):
        runs = None if wanted.files_only else sandbox
        yield from audit_folders(path, runs, wanted.seconds, wanted.only)
        return
    place = Place(path, columns=pairs(filter(None, wanted.columns.split(","))))
    loaded = load(recognized(path) or "audit", place)
    rejected += [f"{row.row}: {row.reason}: {row.fix}" for row in loaded.rejected]
    only = [each for each in loaded.problems if not wanted.only or each.problem_id in wanted.only]
    yield from audit_rows(only, sandbox, rules)


def _show(tasks: Sequence[AuditedTask], console: Console) -> None:
    """Print what failed, task by task, then the counts of each check."""
    from rewards.audit.findings import CHECKS

    colours = {"fail": "bold red", "error": "yellow", "skip": "dim", "pass": "green"}
    failures = Table("task", "check", "evidence", title="Failed checks")
    for task in tasks:
        for finding in task.findings:
            if finding.status in ("fail", "error"):
                title = Text(CHECKS[finding.check_id].title, style=colours[finding.status])
                failures.add_row(Text(task.name), title, Text(finding.evidence[:MAX_EVIDENCE]))
    if failures.row_count:
        console.print(failures)
    counts = Counter((each.check_id, each.status) for task in tasks for each in task.findings)
    table = Table(
        "check", "id", "passed", "failed", "not run", "error", title=f"{len(tasks)} tasks"
    )
    for check_id, check in CHECKS.items():
        row = [counts[check_id, status] for status in ("pass", "fail", "skip", "error")]
        if any(row):
            table.add_row(check.title, check_id, *(str(count or "·") for count in row))
    console.print(table)
    reasons = Counter(
        finding.evidence or "no reason given"
        for task in tasks
        for finding in task.findings
        if finding.status == "skip"
    )
    for reason, count in reasons.most_common(5):
        print_text(console, f"{count} not run: {reason[:MAX_EVIDENCE]}", style="dim")


def command(
    path: Annotated[
        Path,
        typer.Argument(
            help="File of problems, or folder of tasks: Harbor, Terminal-Bench, OpenEnv, verifiers."
        ),
    ],
    *,
    task: Annotated[
        list[str] | None, typer.Option("--task", help="Only this task; repeatable.")
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Names of the columns in a file: statement=prompt,...")
    ] = "",
    files_only: Annotated[
        bool, typer.Option("--files-only", help="Of folders, check files alone; run nothing.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=1.0, help="Most CPU seconds for each of a folder's two runs.")
    ] = 10.0,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
    change: SetOption = None,
) -> None:
    """Audit a task set: find tasks that are broken, leak their answer, or pay for wrong solutions.

    Nothing of it runs outside the sandbox. Exits with 1 if a task fails a check, else with 2 if a
    row could not be read.
    """
    settings = Settings.read(profile, change or ())
    wanted = Wanted(path, columns, task or (), files_only, seconds)
    raise typer.Exit(audit(wanted, settings, screen(), as_json=as_json))


COMMAND = Command("Data", command)
