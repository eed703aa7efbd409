"""`kill -9` of a random process at a random moment of a pipeline run, ten times.

If this test is stopped, its next run resumes from the table. The results are in
`.ratchet/soak/<code version>/kills.jsonl`, one line per kill.
"""

import json
import random
import shutil
from dataclasses import asdict
from typing import Any

import pytest

from tests.journeys.demo_run import Run, demo, kill_one, orphans, results_of
from tests.journeys.undisturbed import FOLDER, undisturbed

KILLS = 10

pytestmark = [pytest.mark.soak]


def test_a_pipeline_run_survives_ten_random_kills() -> None:
    expected, record = undisturbed(), FOLDER / "kills.jsonl"
    done = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    for number in range(len(done), KILLS):
        done.append(one_kill(number, expected))
        with record.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print(done[-1], flush=True)
    print(f"{sum(row['good'] for row in done)} of {len(done)} finished with the same result")
    assert all(row["good"] for row in done), [row for row in done if not row["good"]]


def one_kill(number: int, expected: dict) -> dict:  # type: ignore[type-arg]
    rng = random.Random(f"kill {number}")
    home = FOLDER / f"kill-{number}"
    first = Run(0, 0.0, "")
    # A run that is faster than the reference may end before the kill.
    while not first.killed:
        shutil.rmtree(home, ignore_errors=True)
        first = demo(
            home,
            kill=lambda command: kill_one(
                home, command, rng.uniform(0.02, 0.95) * expected["seconds"], random.Random(number)
            ),
        )
    starts, seconds, last = 1, first.seconds, first
    while last.code != 0 and starts < 3:
        last = demo(home)
        starts, seconds = starts + 1, seconds + last.seconds
    results = json.loads(json.dumps(asdict(results_of(home)))) if last.code == 0 else {}
    remaining = orphans(home)
    same = {part: results.get(part) == expected[part] for part in ("datasets", "models", "scores")}
    ledger = results.get("ledger", [])
    twice = len(ledger) - len({tuple(row) for row in ledger})
    good = last.code == 0 and same["datasets"] and not remaining and twice == 0
    row: dict[str, Any] = {
        "killed": first.killed,
        "at": first.at_stage,
        "starts": starts,
        "seconds": round(seconds),
    }  # type: ignore[type-arg]
    row |= {"same": same, "twice": twice, "orphans": remaining}
    if good:
        shutil.rmtree(home)
    return row | {"good": good, "end": "" if last.code == 0 else last.output[-500:]}
