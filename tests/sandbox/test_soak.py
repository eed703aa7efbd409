"""Half of the jobs are attacks, and workers, zygotes and owners are killed at random.

Each job has exactly one report, and nothing is left behind.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sandbox.isolation import levels
from tests.sandbox.left import descendants, left_behind, reap
from tests.sandbox.soaking import CORPUS, reported

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".ratchet" / "soak"

pytestmark = pytest.mark.skipif(
    not (CORPUS / "manifest.json").exists(),
    reason=f"no {CORPUS}: set RATCHET_HOSTILE to the folder of the hostile programs",
)


@pytest.mark.soak
def test_100_000_jobs_with_random_kills() -> None:
    """Resumes from its journal. RATCHET_SOAK_JOBS stops it earlier."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    soak(
        FOLDER / "sandbox.jsonl",
        FOLDER / "scratch",
        int(os.environ.get("RATCHET_SOAK_JOBS", "100000")),
        kill_every_s=5.0,
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_100_jobs_with_random_kills(tmp_path: Path) -> None:
    soak(tmp_path / "journal.jsonl", tmp_path / "scratch", 100, kill_every_s=1.5)


def soak(journal: Path, scratch: Path, total: int, kill_every_s: float) -> None:
    shutil.rmtree(scratch, ignore_errors=True)  # left over from a soak that was killed
    scratch.mkdir()
    others = descendants(os.getpid())  # of tests before this one
    levels.become_subreaper()  # orphans become our children, so that they are counted
    before = left_behind(scratch)
    # the file of kills lies beside the journal, for a soak that resumes
    draw, owners, struck = (
        random.Random(),
        0,
        journal.with_suffix(".kills"),
    )
    kills = len(struck.read_text().splitlines()) if struck.exists() else 0
    begun = time.monotonic()
    while missing(journal, total):
        owners, undisturbed = owners + 1, kills
        owner = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("soaking.py")), str(journal), str(total)],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(ROOT)},
        )
        while owner.poll() is None:
            try:
                owner.wait(draw.expovariate(1 / kill_every_s))
            except subprocess.TimeoutExpired:
                if strike(draw, owner):
                    kills += 1
                    with struck.open("a") as file:
                        file.write(f"{owner.pid}\n")
        # the owner may fail if a worker dies while it starts
        assert owner.returncode == 0 or kills > undisturbed
        reap(others)
    rows = reported(journal)
    reports = {row["job"]: row["verdict"] for row in rows if "job" in row}
    print(
        f"{total} jobs, {kills} kills, {owners} owners, {time.monotonic() - begun:.0f} s, "
        f"verdicts {counted(list(reports.values()))}"
    )
    # each job exactly once
    assert sorted(row["job"] for row in rows if "job" in row) == list(range(total))
    assert {reports[job] for job in range(0, total, 2)} <= {"AC", "INFRA"}
    # a job is lost only if two of its attempts are killed
    assert sum(reports[job] == "INFRA" for job in range(total)) <= 2 * kills + owners
    assert "AC" not in {reports[job] for job in range(1, total, 2)}
    assert left_behind(scratch) == before
    assert_flat([row for row in rows if "rss_kb" in row])


def missing(journal: Path, total: int) -> bool:
    return len({row["job"] for row in reported(journal) if "job" in row}) < total


def strike(draw: random.Random, owner: subprocess.Popen[bytes]) -> bool:
    """Kill a worker or one of its zygotes, sometimes the owner.

    Return whether there was a process to kill.
    """
    try:
        workers = psutil.Process(owner.pid).children()
        below = [process for worker in workers for process in worker.children(recursive=True)]
        victim = (
            psutil.Process(owner.pid)
            if draw.random() < 0.05
            else draw.choice(workers if draw.random() < 0.5 or not below else below)
        )
        victim.kill()
    except (psutil.Error, IndexError):
        return False
    return True


def assert_flat(samples: list[dict[str, int]]) -> None:
    """Check that no owner's memory grows by more than half between its first samples and its last.

    Restarted workers make the samples vary.
    """
    for owner in {sample["owner"] for sample in samples}:
        sizes = [sample["rss_kb"] for sample in samples if sample["owner"] == owner]
        assert sizes[-1] <= 1.5 * max(sizes[:2]), sizes


def counted(verdicts: list[str]) -> dict[str, int]:
    return {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}
