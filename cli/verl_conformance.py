"""Check whether a version of verl fits: its functions and settings, then a small training."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cli.app.commands import Command
from cli.display.screen import screen


def command(
    path: Annotated[
        Path, typer.Argument(help="A wheel of verl, a folder of its source, or its package.")
    ],
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only read the source; train nothing.")
    ] = False,
) -> None:
    """Check whether a version of verl fits: its functions and settings, then a small training.

    Exits 0 if all fits, else 1 (docs/explanation/verl-versions.md).
    """
    with TemporaryDirectory(prefix="ratchet-verl-") as folder:
        raise typer.Exit(conform(path.expanduser(), Path(folder), read_only, screen()))


def conform(path: Path, folder: Path, read_only: bool, console: Console) -> int:
    """Print what does not fit, and how far a training gets. Raises FileNotFoundError."""
    from experiments.verl_trial import TRAINING, try_training
    from verl_jobs.adapter import conformance, versions

    verl = conformance.package_of(path, folder / "wheel")
    version = conformance.version_of(verl)
    series = versions.nearest(version)
    findings = conformance.findings(verl, versions.ADAPTERS[series])
    missing = [each for each in findings if each.fault]
    table = Table("area", "fits", "missing")
    for area in dict.fromkeys(each.area for each in findings):
        faults = [bool(each.fault) for each in findings if each.area == area]
        table.add_row(area, str(len(faults) - sum(faults)), str(sum(faults)))
    console.print(f"verl {version}, adapter {series}", highlight=False)
    console.print(table)
    for each in missing:
        console.print(f"{each.name}: {each.fault}", markup=False, highlight=False, soft_wrap=True)
    if read_only:
        return int(bool(missing))
    installed_as = version if version.startswith(f"{series}.") else f"{series}.0+{version}"
    with console.status("training"):
        trial = try_training(verl, installed_as, folder / "training")
    console.print(
        f"training: {trial.steps} of {TRAINING.steps} steps, {trial.saves} checkpoints"
        f"{': ' if trial.error else ''}{trial.error}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return int(bool(missing or trial.error))


COMMAND = Command("Train", command)
