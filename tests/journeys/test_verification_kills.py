"""A verification pass survives `kill -9` at random moments.

The result is that of an undisturbed pass, each kill costs at most the batch in flight, and no
verdict is recorded twice. Jobs are counted in a file next to the journal, one line per job
submitted to the sandbox. If the long test is stopped, its next run resumes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from artifacts.manifest import code_version
from problems.schema import Problem, write_parquet
from sandbox.protocol import Limits

BATCH = 4
FOLDER = Path(".ratchet/soak").absolute() / code_version() / "verification"
PASS = f"""
import json, sys
from pathlib import Path
from problems.schema import read_parquet, set_hash
from problems.verification.verification import verify
from sandbox.sandbox import Sandbox, SandboxConfig

class Counted:
    def __init__(self, sandbox, path):
        self.sandbox, self.file = sandbox, path.open("a", buffering=1)
    def run(self, jobs, *more, **named):
        def counted():
            for job in jobs:
                self.file.write(json.dumps(job.source) + "\\n")
                yield job
        return self.sandbox.run(counted(), *more, **named)

folder = Path(sys.argv[1])
with Sandbox(SandboxConfig(workers=1)) as sandbox:
    problems, counted = read_parquet(folder / "problems.parquet"), Counted(sandbox, folder / "jobs")
    verified = verify(problems, counted, folder / "journal.jsonl", batch_size={BATCH})
removed = sorted([row.problem_id, row.reason] for row in verified.removed)
(folder / "end.json").write_text(json.dumps({{"hash": set_hash(verified.problems), \
"problems": len(verified.problems), "removed": removed}}))
"""


def make_problems(count: int) -> list[Problem]:
    """Return this many problems; every fifth is wrong."""
    problems = []
    for number in range(count):
        source = f"def f(x):\n    return {'0' if number % 5 == 0 else 'x'} + {number}\n"
        tests = tuple({"args": [x], "expected": x + number} for x in (1, 5, -7))
        limits = Limits(wall_s=5.0, memory_mb=128)
        problems.append(
            Problem(
                f"toy/{number}",
                "toy",
                f"Add {number}.",
                "call",
                tests,
                "f",
                solutions=(source,),
                limits=limits,
            )
        )
    return problems


def start(folder: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return subprocess.Popen([sys.executable, "-c", PASS, str(folder)], env=environment)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@dataclass(frozen=True)
class Counts:
    """The number of jobs, the number of its solution's jobs by problem, and the journal's lines."""

    jobs: int
    own: Counter[str]
    journal: list[str]


def counts(folder: Path, problems: list[Problem]) -> Counts:
    jobs = [json.loads(line) for line in lines(folder / "jobs")]
    names = {problem.solutions[0]: problem.problem_id for problem in problems}
    return Counts(
        len(jobs),
        Counter(names[source] for source in jobs if source in names),
        lines(folder / "journal.jsonl"),
    )


def kill_times(folder: Path, problems: list[Problem], times: int) -> int:
    """Start the pass until it has been killed `times` times, then until it ends; return the kills.

    Resumes from the state in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "problems.parquet").exists():
        write_parquet(problems, folder / "problems.parquet")
    record = folder / "kills"
    while not (folder / "end.json").exists():
        done = len(lines(record))
        rng, before = random.Random(f"kill {done}"), len(lines(folder / "jobs"))
        target, process = before + rng.randint(1, 6 * BATCH), start(folder)
        while process.poll() is None and (done == times or len(lines(folder / "jobs")) < target):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.1) if process.poll() is None else 0)
        process.send_signal(signal.SIGKILL)
        assert process.wait() in (0, -signal.SIGKILL)
        if process.returncode:
            with record.open("a") as file:
                file.write(
                    f"{len(lines(folder / 'jobs')) - before} jobs, "
                    f"{len(lines(folder / 'journal.jsonl'))} verdicts\n"
                )
    return len(lines(record))


def compare_with_undisturbed(folder: Path, count: int, times: int) -> None:
    problems = make_problems(count)
    assert kill_times(folder / "undisturbed", problems, 0) == 0
    kills = kill_times(folder / "killed", problems, times)
    undisturbed = counts(folder / "undisturbed", problems)
    killed = counts(folder / "killed", problems)
    repeated = sum((killed.own - undisturbed.own).values())
    print(
        f"{kills} kills: {undisturbed.jobs} jobs undisturbed, {killed.jobs} killed; "
        f"{repeated} solutions judged again, of at most {kills * BATCH}"
    )
    assert kills == times
    assert json.loads((folder / "killed/end.json").read_text()) == json.loads(
        (folder / "undisturbed/end.json").read_text()
    )
    runs = max(undisturbed.own.values())  # how often one pass runs a solution
    ids = {problem.problem_id for problem in problems}
    assert set(undisturbed.own) == set(killed.own) == ids
    assert repeated <= kills * BATCH * runs
    hashes = [json.loads(line)["content_hash"] for line in killed.journal]
    assert len(hashes) == len(set(hashes)) == count == len(undisturbed.journal)


@pytest.mark.slow
def test_two_kills_repeat_no_verdict(tmp_path: Path) -> None:
    compare_with_undisturbed(tmp_path, 16, 2)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_twenty_kills_repeat_no_verdict() -> None:
    compare_with_undisturbed(FOLDER, 240, 20)
