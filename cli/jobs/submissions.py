"""`ratchet jobs list|logs|stop --address URL`: all trainings of a Ray cluster, whoever submitted
them.
"""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from resources.home import NotReady

LONGEST_END_S = (
    90.0  # Ray kills what has not ended 60 s after it was told to (verl_jobs/config/environment.py)
)


def list_submissions(address: str, console: Console) -> int:
    """Every job of the cluster, ours first."""
    table = Table(box=None, header_style="dim")
    for name in ("job", "run", "state", "started", "minutes", "message"):
        table.add_column(name, no_wrap=name != "message")
    submissions = sorted(
        _client(address).list_jobs(), key=lambda each: (not _run(each), -(each.start_time or 0))
    )
    for each in submissions:
        end = (each.end_time or time.time() * 1000) / 1000
        start = (each.start_time or end * 1000) / 1000
        began = time.strftime("%Y-%m-%d %H:%M", time.gmtime(start))
        table.add_row(
            str(each.submission_id),
            _run(each),
            str(each.status.value),
            began,
            f"{(end - start) / 60:.1f}",
            escape(str(each.message or "")),
        )
    console.print(table if submissions else f"{address} knows no job.")
    return 0


def show_submission_logs(address: str, run: str | None, lines: int, console: Console) -> int:
    """What Ray kept of the job's output; the trainer's own log lies in the run's folder."""
    client = _client(address)
    for line in client.get_job_logs(_one(client, address, run).submission_id).splitlines()[-lines:]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0


def stop_submission(address: str, run: str | None, console: Console) -> int:
    """Stop a job of the cluster; its checkpoints stay. Returns 0 when it has ended, 1 if it has not
    within 90 s.
    """
    client = _client(address)
    name = _one(client, address, run).submission_id
    client.stop_job(name)
    deadline = time.monotonic() + LONGEST_END_S
    while not client.get_job_status(name).is_terminal():
        if time.monotonic() > deadline:
            console.print(f"{name} has not ended within {LONGEST_END_S:.0f} s", style="red")
            return 1
        time.sleep(0.5)
    console.print(f"{name} is {client.get_job_status(name).value}. What was saved is kept.")
    return 0


def _client(address: str) -> Any:
    """Return a client. Raises NotReady if no Ray answers. The token is that of RAY_AUTH_TOKEN or
    RAY_AUTH_TOKEN_PATH, with RAY_AUTH_MODE=token.
    """
    from resources.ray.private import responds

    if not address.startswith(("http://", "https://")) or not responds(address):
        raise NotReady(
            f"no Ray answers at {address}: give the dashboard's address, http://host:8265"
        )
    from ray.job_submission import JobSubmissionClient

    return JobSubmissionClient(address)


def _one(client: Any, address: str, run: str | None) -> Any:
    """Return the newest job of the run, or Ratchet's newest job without a name. Raises NotReady,
    which lists the jobs.
    """
    ours = sorted(
        (each for each in client.list_jobs() if _run(each)), key=lambda each: each.start_time or 0
    )
    chosen = [each for each in ours if run in (None, each.submission_id, _run(each))]
    if not chosen:
        run_ids = ", ".join(sorted({_run(each) for each in ours})) or "none"
        raise NotReady(
            f"{address} knows no training{f' {run}' if run else ''}: there are {run_ids}"
        )
    return chosen[-1]


def _run(job: Any) -> str:
    """chain-0001 of chain-0001-0123456789-1700000000000; empty for a job that is none of ours."""
    parts = str(job.submission_id or "").rsplit("-", 2)
    return parts[0] if len(parts) == 3 and "job.json" in str(job.entrypoint) else ""
