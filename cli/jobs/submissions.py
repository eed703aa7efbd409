"""`ratchet jobs list|logs|stop --address URL`: the jobs of a Ray cluster, from any home."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cli.display.screen import print_json
from resources.home import NotReady

STOP_TIMEOUT_S = 90.0  # Ray kills a job after 60 s (verl_jobs/config/environment.py)


def list_submissions(address: str, console: Console, *, as_json: bool = False) -> int:
    """Print every job of the cluster, those of Ratchet first."""
    submissions = sorted(
        _client(address).list_jobs(), key=lambda each: (not _run(each), -(each.start_time or 0))
    )
    jobs = [_line(each) for each in submissions]
    if as_json:
        print_json(jobs)
        return 0
    table = Table(box=None, header_style="dim")
    for name in ("job", "run", "state", "started", "minutes", "message"):
        table.add_column(name, no_wrap=name != "message")
    for job in jobs:
        table.add_row(*(escape(str(value)) for value in job.values()))
    console.print(table if jobs else f"No jobs at {address}.")
    return 0


def _line(submission: Any) -> dict[str, Any]:
    end = (submission.end_time or time.time() * 1000) / 1000
    start = (submission.start_time or end * 1000) / 1000
    return {
        "job": str(submission.submission_id),
        "run": _run(submission),
        "state": str(submission.status.value),
        "started": time.strftime("%Y-%m-%d %H:%M", time.gmtime(start)),
        "minutes": round((end - start) / 60, 1),
        "message": str(submission.message or ""),
    }


def show_submission_logs(address: str, run: str | None, lines: int, console: Console) -> int:
    """Print the job's output from Ray; the trainer's own log is in the run's folder."""
    client = _client(address)
    log = client.get_job_logs(_find_job(client, address, run).submission_id)
    for line in log.splitlines()[-lines:]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0


def stop_submission(address: str, run: str | None, console: Console) -> int:
    """Stop a job; its checkpoints stay. Return 0 when it has ended, 1 on a timeout."""
    client = _client(address)
    name = _find_job(client, address, run).submission_id
    client.stop_job(name)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while not client.get_job_status(name).is_terminal():
        if time.monotonic() > deadline:
            print(f"error: {name} has not ended within {STOP_TIMEOUT_S:.0f} s", file=sys.stderr)
            return 1
        time.sleep(0.5)
    console.print(f"{name} is {client.get_job_status(name).value}; its checkpoints stay.")
    return 0


def _client(address: str) -> Any:
    """Return a client. Raises NotReady if Ray does not answer.

    With RAY_AUTH_MODE=token, the token is in RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH.
    """
    from resources.ray.private import responds

    if not address.startswith(("http://", "https://")) or not responds(address):
        raise NotReady(
            f"no Ray cluster at {address}: give the dashboard's address, http://host:8265"
        )
    from ray.job_submission import JobSubmissionClient

    return JobSubmissionClient(address)


def _find_job(client: Any, address: str, run: str | None) -> Any:
    """Return the newest job of the run, by default Ratchet's newest job.

    Raises NotReady, which lists the runs.
    """
    own_jobs = sorted(
        (each for each in client.list_jobs() if _run(each)), key=lambda each: each.start_time or 0
    )
    chosen = [each for each in own_jobs if run in (None, each.submission_id, _run(each))]
    if not chosen:
        run_ids = ", ".join(sorted({_run(each) for each in own_jobs})) or "none"
        raise NotReady(
            f"no training{f' {run}' if run else ''} at {address}: known runs are {run_ids}"
        )
    return chosen[-1]


def _run(job: Any) -> str:
    """Return chain-0001 for chain-0001-0123456789-1700000000000; "" if the job is not Ratchet's."""
    parts = str(job.submission_id or "").rsplit("-", 2)
    return parts[0] if len(parts) == 3 and "job.json" in str(job.entrypoint) else ""
