"""Twenty short trainings; in each, one process is killed at a random moment.

`ratchet demo` must finish on its own, with the weights of an undisturbed run. If this test is
stopped, its next run resumes from the table.

The results are in `.ratchet/soak/<code version>/chaos.jsonl`, one line per kill.
"""

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.demo_run import (
    Run,
    command_line,
    demo,
    of_home,
    orphans,
    results_of,
    steps,
    training_of,
    wait_until,
)
from tests.journeys.undisturbed import FOLDER, before_training, undisturbed
from verl_jobs import faults

RUNS = 20
STEPS = 8  # of the profile `small`
RECOVERY_S = 400.0
VICTIMS: dict[str, Callable[[list[str]], bool]] = {
    "the training's driver": lambda line: "verl_jobs.trainer.entry" in line,
    "verl's trainer": lambda line: line[0].startswith("ray::TaskRunner"),
    "a Ray worker": lambda line: (
        line[0].startswith("ray::")
        and not line[0].startswith(("ray::TaskRunner", "ray::IDLE", "ray::JobSupervisor"))
    ),
    "the raylet": lambda line: line[0].endswith("raylet/raylet"),
    "the Dagster run's worker": lambda line: "pipelines.run_worker" in line,
}

pytestmark = [pytest.mark.soak]


def test_trainings_with_a_random_kill_finish_automatically() -> None:
    expected, record = undisturbed(), FOLDER / "chaos.jsonl"
    done = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    for number in range(len(done), RUNS):
        done.append(one_run(number, expected))
        with record.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print(done[-1], flush=True)
    print(table(done))
    assert all(row["good"] for row in done), [row for row in done if not row["good"]]


def one_run(number: int, expected: dict[str, Any]) -> dict[str, Any]:
    """Run one training with a kill and return its row of the table.

    In the first half of the runs the kill comes at a random moment, mostly while Ray and verl
    start; in the second half it comes after a random step.
    """
    rng, home = random.Random(f"chaos {number}"), FOLDER / f"chaos-{number}"
    observed: dict[str, Any] = {}
    victim = sorted(VICTIMS)[number % len(VICTIMS)]

    def kill(command: subprocess.Popen[bytes]) -> str:
        assert wait_until(lambda: training_of(home) or command.poll() is not None, 300), (
            "no training began"
        )
        began = time.monotonic()
        if number < RUNS // 2:
            time.sleep(rng.uniform(0.05, 0.9) * expected["training_s"])
        else:
            step = rng.randint(1, STEPS - 1)
            assert wait_until(
                lambda: (folder := training_of(home)) and steps(folder) >= step, RECOVERY_S
            ), f"no step {step}"
            time.sleep(rng.uniform(0, 2))
        observed["after_s"] = time.monotonic() - began
        return kill_victim(home, victim, rng, observed)

    run = Run(0, 0.0, "")
    # The kill may come before such a process exists, or after the end.
    while not run.killed:
        before_training(home)
        run = demo(home, kill=kill)
    results = json.loads(json.dumps(asdict(results_of(home)))) if run.code == 0 else {}
    same = {part: results.get(part) == expected[part] for part in ("models", "scores")}
    remaining, folder = orphans(home), training_of(home)
    row = {
        "killed": run.killed,
        "after_s": round(observed["after_s"]),
        "at": observed.get("at", run.at_stage),
        "recovered_s": observed.get("recovered_s"),
    }
    row |= {
        "seconds": round(run.seconds),
        "same": same,
        "faults": [fault.what for fault in faults.read(folder)] if folder else [],
        "left": remaining,
    }
    good = run.code == 0 and bool(run.killed) and all(same.values()) and not remaining
    if good:
        shutil.rmtree(home)
    return row | {"good": good, "end": "" if run.code == 0 else run.output[-500:]}


def kill_victim(home: Path, victim: str, rng: random.Random, observed: dict[str, Any]) -> str:
    """Kill one process of this kind and wait until a new step is done.

    Returns the killed process, or "" if there was none. Adds the step of the kill and the seconds
    until the new step to `observed`.
    """
    folder = training_of(home)
    assert folder
    candidates = [
        process for process in of_home(home) if VICTIMS[victim](command_line(process) or [""])
    ]
    if not candidates or (folder / "done.json").exists():
        return ""
    process = rng.choice(sorted(candidates, key=lambda process: process.pid))
    name = (command_line(process) or [""])[0].split("(")[0].rpartition("/")[2]
    before, began = steps(folder), time.monotonic()
    process.send_signal(signal.SIGKILL)
    observed["at"] = f"step {before}"
    if wait_until(lambda: steps(folder) > before or (folder / "done.json").exists(), RECOVERY_S):
        observed["recovered_s"] = round(time.monotonic() - began, 1)
    return f"{victim} ({name})"


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table for docs/measurements."""
    lines = [
        ("| killed | at | seconds until a new step | total seconds | weights, scores | finished |"),
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        equal = "equal" if all(row["same"].values()) else "differ"
        lines.append(
            f"| {row['killed']} | {row['at']} | {row['recovered_s']} | {row['seconds']} | "
            f"{equal} | {'yes' if row['good'] else 'no'} |"
        )
    recovered = sorted(row["recovered_s"] for row in rows if row["recovered_s"] is not None)
    middle = f", median {recovered[len(recovered) // 2]} s until a new step" if recovered else ""
    return "\n".join(lines) + (
        f"\n{sum(row['good'] for row in rows)} of {len(rows)} finished with the results of an "
        f"undisturbed run{middle}"
    )
