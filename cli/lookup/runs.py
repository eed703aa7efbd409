"""Find a run of this home and the folder of its training."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from resources import lease
from resources.home import Home
from resources.run_record import PipelineRun, RunRecord, readable, unreadable


def numbers_table(*names: str) -> Table:
    table = Table(box=None, header_style="dim")
    for name in names:
        table.add_column(name, justify="left" if name == "problem" else "right")
    return table


def folder_of(run: str | None, home: Home) -> Path:
    """Return the newest training folder of a run, by default of the newest run.

    A run that is named needs no readable record. Raises FileNotFoundError, which lists the runs,
    and CorruptArtifact where the newest training belongs to a record that is damaged.
    """
    if run and (folder := training_folder(home, run)):
        return folder
    trained = [record.id for record in readable(home.runs) if training_folder(home, record.id)]
    errors = unreadable(home.runs).items()
    damaged = {id: error for id, error in errors if training_folder(home, id)}
    if run is None and (trained or damaged):
        last = max([*trained[-1:], *damaged], key=lambda id: _started(home, id))
        if last in damaged:
            raise damaged[last]
        return folder_of(last, home)
    known = ", ".join([*trained, *damaged]) or "none yet: `ratchet train` starts one"
    raise FileNotFoundError(
        f"no training{f' {run}' if run else ''} in {home.path}: known runs are {known}"
    )


def find_run(run: str | None, home: Home) -> tuple[RunRecord, Path]:
    """Return record and newest training folder of a run, by default of the newest run.

    Raises as `folder_of` does, and CorruptArtifact for a record that is damaged.
    """
    folder = folder_of(run, home)
    return PipelineRun(home.runs, folder.parents[1].name).record, folder


def _started(home: Home, run: str) -> float:
    folder = training_folder(home, run)
    return (folder / "job.json").stat().st_mtime if folder else 0.0


def training_folder(home: Home, run: str) -> Path | None:
    """Return the folder of a run's newest training job; None if it has none."""
    jobs = sorted(
        (home.runs / run / "training").glob("*/job.json"), key=lambda path: path.stat().st_mtime
    )
    return jobs[-1].parent if jobs else None


def run_state(home: Home, record: RunRecord) -> str:
    """Return the run's state or decision in one or two words."""
    holder = lease.holder(home.lease)
    if holder and holder.run_id == record.id:
        return "training"
    states = {
        "open": "interrupted",
        "failed": "failed",
        "done": "ended" if record.kind == "study" else "decided",
    }
    return {"promote": "promoted", "refuse": "not promoted", "install": "installed"}.get(
        record.decision, states[record.state]
    )


def last_value(rows: list[dict[str, object]], key: str, form: str) -> str:
    """Return the newest value of a metric in this format; "" if no row has it."""
    values = [row[key] for row in rows if key in row]
    return format(float(str(values[-1])), form) if values else ""
