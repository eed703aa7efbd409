"""Fifty short trainings; in each, one process stands still (SIGSTOP) from a random moment on.

The training must finish, or end with the name of the process: it never waits for ever. The kinds
of processes are frozen in turn, Ray's daemons and the sandbox's among them. If this test is
stopped, its next run resumes from the table, `.ratchet/soak/<code version>/freezes.jsonl`.
"""

import json
import random
import shutil
import subprocess
import time
from collections import defaultdict
from typing import Any

import psutil
import pytest

from resources.ray.private import Private
from tests.journeys.demo_run import wait_until
from tests.journeys.undisturbed import FOLDER
from tests.verl_jobs.real_trainings import command, environment
from verl_jobs import faults
from verl_jobs.config.training import Training
from verl_jobs.plugins.tiny_training import TinyTraining
from verl_jobs.trainer import progress

FREEZES = 50
PHASES = ("start of verl", "validation after", "rollouts of", "update of", "save of")
TRAINING = Training(
    steps=4,
    save_every=2,
    problems_per_step=4,
    group_size=4,
    answer_tokens=16,
    threads=1,
    stall_s=240,
)
WITHIN_S = 1500.0  # for what takes two minutes on an idle machine

pytestmark = [pytest.mark.soak]


def test_a_training_never_waits_for_ever_for_a_process_that_stands_still() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    record = FOLDER / "freezes.jsonl"
    rows = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    for number in range(len(rows), FREEZES):
        rows.append(one_freeze(number))
        with record.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(rows[-1], flush=True)
    print(f"{sum(row['good'] for row in rows)} of {len(rows)} finished, or named the process")
    assert all(row["good"] for row in rows), [row for row in rows if not row["good"]]


def one_freeze(number: int) -> dict[str, Any]:
    """Run one training with a frozen process, and return its row of the table."""
    rng, folder = random.Random(f"freeze {number}"), FOLDER / f"freeze-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    job = TinyTraining(TRAINING, folder).job
    ray, log = Private(folder / "ray", job), folder / "owner.log"
    with log.open("wb") as out:
        owner = subprocess.Popen(
            command(job, attempts=3), env=environment(), stdout=out, stderr=out
        )
    watch, phase = progress.ProgressWatch(folder, WITHIN_S), rng.choice(PHASES)

    def reached() -> bool:
        watch.look()
        return watch.phase.startswith(phase) or owner.poll() is not None

    try:
        assert wait_until(reached, WITHIN_S), f"no phase {phase}"
        time.sleep(rng.uniform(0, 1))
        assert owner.poll() is None, log.read_text()[-800:]
        name, victim = choose(ray, number)
        at = watch.phase
        victim.suspend()
        began = time.monotonic()
        code = (
            owner.wait(WITHIN_S) if wait_until(lambda: owner.poll() is not None, WITHIN_S) else None
        )
        seconds = time.monotonic() - began
    finally:
        owner.kill()
        ray.end()
    survived = [fault.what for fault in faults.read(folder)]
    named = name in log.read_text() or any(name in fault for fault in survived)
    good = job.done is not None if code == 0 else code is not None and named
    row = {
        "frozen": name,
        "at": at,
        "seconds": round(seconds),
        "code": code,
        "faults": survived,
        "good": good,
        "end": "" if code == 0 else log.read_text()[-500:],
    }
    if good:
        shutil.rmtree(folder)
    return row


def choose(ray: Private, number: int) -> tuple[str, psutil.Process]:
    """Return a process of the training and its name; the kinds take turns."""
    head = ray.head()
    assert head
    kinds: dict[str, list[psutil.Process]] = defaultdict(list)
    for process in [head, *head.children(recursive=True)]:
        kinds[progress.name_of(process)].append(process)
    kind = sorted(kinds)[number % len(kinds)]
    return kind, kinds[kind][0]
