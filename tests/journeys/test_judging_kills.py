"""`ratchet evaluate --benchmark --completions` survives `kill -9` at random moments.

No recorded verdict is lost, none is recorded twice, and the result is that of an undisturbed pass.
The verdict TLE is not recorded: each pass judges such a program again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TASKS = [
    {
        "id": f"add-{n}",
        "statement": f"Add {n}.",
        "style": "call",
        "entry_point": "f",
        "tests": [{"args": [x], "expected": x + n} for x in range(9)],
    }
    for n in range(40)
]
BODIES = (
    "return x + {n}",
    "return x - {n} - 1",
    "return [][x]",
    "return x +",
    "while True: x += 1",
    "import time; time.sleep(0.01); return x + {n}",
)


def completions(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return `count` distinct completions for each task; a few never terminate."""
    rng = random.Random(seed)
    weights = (8, 8, 2, 2, 0.1, 4)
    bodies = [
        (task, number, rng.choices(BODIES, weights)[0])
        for task in range(len(TASKS))
        for number in range(count)
    ]
    return [
        {"task_id": f"add-{n}", "solution": f"def f(x):  # {number}\n    {body.format(n=n)}\n"}
        for n, number, body in bodies
    ]


def write_benchmark(folder: Path, count: int) -> Path:
    """Write the benchmark and its completions into a new folder."""
    folder.mkdir(parents=True)
    (folder / "mine.jsonl").write_text(
        "".join(
            json.dumps(task | {"limits": {"cpu_s": 0.5, "wall_s": 20}}) + "\n" for task in TASKS
        )
    )
    (folder / "mine.yaml").write_text("{name: mine, data: mine.jsonl, max_new_tokens: 8}")
    (folder / "completions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in completions(count))
    )
    return folder


def start(folder: Path, home: str) -> subprocess.Popen[bytes]:
    command = [
        str(Path(sys.executable).with_name("ratchet")),
        "evaluate",
        "--benchmark",
        "mine.yaml",
        "--completions",
        "completions.jsonl",
    ]
    environment = os.environ | {"RATCHET_HOME": str(folder / home)}
    return subprocess.Popen(
        [*command, "--out", f"{home}.jsonl"], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )


def recorded_lines(folder: Path, home: str) -> list[bytes]:
    path = folder / home / "benchmarks" / "mine.verdicts.jsonl"
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def verdicts(folder: Path, home: str) -> list[dict[str, Any]]:
    """Return the verdict of each sample, without measured times."""
    rows = [json.loads(line) for line in (folder / f"{home}.jsonl").read_text().splitlines()]
    return [
        {key: row[key] for key in ("task_id", "sample", "base", "verdict", "detail")}
        for row in rows
    ]


def kill_repeatedly(folder: Path, times: int, most: int) -> None:
    """Start and kill the pass `times` times, each time after 1 to `most` more recorded verdicts."""
    for kill in range(times):
        rng, before = random.Random(f"kill {kill}"), recorded_lines(folder, "killed")
        target, process = len(before) + rng.randint(1, most), start(folder, "killed")
        while len(recorded_lines(folder, "killed")) < target:
            assert process.poll() is None, f"it ended before kill {kill + 1}"
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        complete = [line for line in before if line.endswith(b"\n")]
        assert recorded_lines(folder, "killed")[: len(complete)] == complete


def compare_with_undisturbed(folder: Path, count: int, times: int, most: int) -> None:
    write_benchmark(folder, count)
    assert start(folder, "undisturbed").wait() == 0
    kill_repeatedly(folder, times, most)
    recorded = len(recorded_lines(folder, "killed"))
    assert start(folder, "killed").wait() == 0
    keys = [json.loads(line)["key"] for line in recorded_lines(folder, "killed")]
    print(
        f"{times} kills: {recorded} of {len(keys)} verdicts were recorded before the last pass, "
        f"{len(keys) - len(set(keys))} are recorded twice"
    )
    undisturbed = verdicts(folder, "undisturbed")
    in_time = sum(row["verdict"] != "TLE" for row in undisturbed)
    assert len(undisturbed) == count * len(TASKS)
    assert len(keys) == len(set(keys)) == len(recorded_lines(folder, "undisturbed")) == in_time
    assert verdicts(folder, "killed") == undisturbed
    assert len({row["verdict"] for row in verdicts(folder, "killed")}) == 5


@pytest.mark.slow
def test_two_kills_lose_and_repeat_no_verdict(tmp_path: Path) -> None:
    compare_with_undisturbed(tmp_path / "judging", 3, 2, 30)


@pytest.mark.soak
def test_thirty_kills_lose_and_repeat_no_verdict(tmp_path: Path) -> None:
    compare_with_undisturbed(tmp_path / "judging", 150, 30, 190)
