"""A machine that sleeps: all processes of a pipeline run are suspended for minutes, then continue.

`ratchet demo` must finish on its own, with the result of an undisturbed run. If this test is
stopped, its next run resumes from the table, `.ratchet/soak/<code version>/suspension.jsonl`.
"""

import json
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.journeys.demo_run import (
    Run,
    demo,
    now_at,
    of_home,
    orphans,
    results_of,
    steps,
    training_of,
    wait_until,
)
from tests.journeys.undisturbed import FOLDER, undisturbed
from verl_jobs import faults

MOMENTS = ("warm-up", "start of Ray", "training", "scoring")
SECONDS = (120, 720)

pytestmark = [pytest.mark.soak]


def test_suspended_runs_finish_automatically() -> None:
    expected, record = undisturbed(), FOLDER / "suspension.jsonl"
    rows = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    done = {(row["at"], row["suspended_s"]) for row in rows}
    for seconds in SECONDS:
        for moment in MOMENTS:
            if (moment, seconds) not in done:
                rows.append(one_run(moment, seconds, expected))
                with record.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(rows[-1], flush=True)
    assert all(row["good"] for row in rows), [row for row in rows if not row["good"]]


def one_run(moment: str, seconds: int, expected: dict[str, Any]) -> dict[str, Any]:
    """Run one pipeline run that is suspended at this moment, and return its row of the table."""
    home = FOLDER / f"suspended-{moment.replace(' ', '-')}-{seconds}"
    shutil.rmtree(home, ignore_errors=True)
    continued: list[float] = []

    def sleep(command: subprocess.Popen[bytes]) -> str:
        assert wait_until(lambda: reached(home, moment) or command.poll() is not None, 600)
        assert command.poll() is None, f"the run ended before its {moment}"
        suspended = suspend(home, psutil.Process(command.pid))
        time.sleep(seconds)
        for process in suspended:
            with suppress(psutil.NoSuchProcess):  # its parent had ended it already
                process.resume()
        continued.append(time.monotonic())
        return f"{len(suspended)} processes"

    run: Run = demo(home, kill=sleep, timeout=seconds + 1500)
    after_s = time.monotonic() - continued[0]
    results = json.loads(json.dumps(asdict(results_of(home)))) if run.code == 0 else {}
    same = {part: results.get(part) == expected[part] for part in ("models", "scores")}
    left, folder = orphans(home), training_of(home)
    good = run.code == 0 and all(same.values()) and not left
    row = {
        "at": moment,
        "suspended_s": seconds,
        "suspended": run.killed,
        "seconds_after": round(after_s),
        "same": same,
        "faults": [fault.what for fault in faults.read(folder)] if folder else [],
        "left": left,
        "good": good,
        "end": "" if run.code == 0 else run.output[-800:],
    }
    if good:
        shutil.rmtree(home)
    return row


def reached(home: Path, moment: str) -> bool:
    folder = training_of(home)
    match moment:
        case "warm-up":
            return now_at(home) == "sft_checkpoint"
        case "start of Ray":
            return folder is not None
        case "training":
            return folder is not None and steps(folder) >= 2
        case _:
            return now_at(home) == "contestant_scores"


def suspend(home: Path, command: psutil.Process) -> list[psutil.Process]:
    """Suspend all processes of the run, those included that start meanwhile; return them."""
    suspended: dict[int, psutil.Process] = {}
    for _ in range(5):
        for process in [command, *of_home(home)]:
            if process.pid not in suspended and process.is_running():
                process.suspend()
                suspended[process.pid] = process
    return list(suspended.values())
