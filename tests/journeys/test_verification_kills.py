"""`kill -9` at random moments of one verification pass.

The pass ends like an undisturbed one, each kill costs at most the batch in flight, and no verdict
is recorded twice.

Jobs are counted in a file beside the journal, one line per job submitted to the sandbox. If the
long test is stopped, its next run resumes.
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
    done = verify(read_parquet(folder / "problems.parquet"), Counted(sandbox, folder / "jobs"), \
folder / "journal.jsonl", batch_size={BATCH})
removed = sorted([row.problem_id, row.reason] for row in done.removed)
(folder / "end.json").write_text(json.dumps({{"hash": set_hash(done.problems), \
"kept": len(done.problems), "removed": removed}}))
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
    """The number of jobs, the jobs of the solutions alone by problem, and the journal's lines."""

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
        wanted, life = before + rng.randint(1, 6 * BATCH), start(folder)
        while life.poll() is None and (done == times or len(lines(folder / "jobs")) < wanted):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.1) if life.poll() is None else 0)
        life.send_signal(signal.SIGKILL)
        assert life.wait() in (0, -signal.SIGKILL)
        if life.returncode:
            with record.open("a") as file:
                file.write(
                    f"{len(lines(folder / 'jobs')) - before} jobs, "
                    f"{len(lines(folder / 'journal.jsonl'))} verdicts\n"
                )
    return len(lines(record))


def killed_and_undisturbed(folder: Path, count: int, times: int) -> None:
    problems = make_problems(count)
    assert kill_times(folder / "undisturbed", problems, 0) == 0
    kills = kill_times(folder / "killed", problems, times)
    one, other = counts(folder / "undisturbed", problems), counts(folder / "killed", problems)
    again = sum((other.own - one.own).values())
    print(
        f"{kills} kills: {one.jobs} jobs undisturbed, {other.jobs} killed; "
        f"{again} solutions judged again, of at most {kills * BATCH}"
    )
    assert kills == times
    assert json.loads((folder / "killed/end.json").read_text()) == json.loads(
        (folder / "undisturbed/end.json").read_text()
    )
    each = max(one.own.values())  # how often one pass runs a solution
    assert (
        set(one.own) == set(other.own) == {problem.problem_id for problem in problems}
        and again <= kills * BATCH * each
    )
    hashes = [json.loads(line)["content_hash"] for line in other.journal]
    assert len(hashes) == len(set(hashes)) == count == len(one.journal)


@pytest.mark.slow
def test_two_kills_repeat_no_verdict(tmp_path: Path) -> None:
    killed_and_undisturbed(tmp_path, 24, 2)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_twenty_kills_repeat_no_verdict() -> None:
    killed_and_undisturbed(FOLDER, 240, 20)
