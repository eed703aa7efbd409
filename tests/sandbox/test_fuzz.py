"""Random programs together with honest ones.

No random program is accepted, none delays a report, none changes another program's verdict, and
nothing is left behind.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sandbox.folders import remove
from sandbox.isolation import levels
from tests.children import python
from tests.sandbox.fuzzing import source
from tests.sandbox.left import descendants, left_behind, reap
from tests.sandbox.soaking import reported

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".ratchet" / "soak"
BATCH = 500  # programs that share a sandbox; the isolation levels take turns


@pytest.mark.soak
def test_100_000_random_programs() -> None:
    """Resumes from its journal. RATCHET_FUZZ_PROGRAMS stops it earlier."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    fuzz(
        FOLDER / "fuzz.jsonl",
        FOLDER / "fuzz",
        int(os.environ.get("RATCHET_FUZZ_PROGRAMS", "100000")),
        BATCH,
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_60_random_programs(tmp_path: Path) -> None:
    fuzz(tmp_path / "fuzz.jsonl", tmp_path / "scratch", 60, 20)


def fuzz(journal: Path, scratch: Path, total: int, batch: int) -> None:
    """Judge programs in batches; write a line with the findings of each batch to the journal."""
    remove(str(scratch))  # left over from a run that was killed
    scratch.mkdir()
    others = descendants(os.getpid())  # of tests before this one
    levels.become_subreaper()  # orphans become our children, so that they are counted
    before = left_behind(scratch)
    done = {row["from"] for row in reported(journal)}
    for first in range(0, total, batch):
        if first not in done:
            findings = one_batch(
                first, min(first + batch, total), levels.LEVELS[first // batch % 3], scratch
            )
            reap(others)
            if (left := left_behind(scratch)) != before:
                findings.append(
                    {"job": f"of {first} to {first + batch}", "fault": f"left behind: {left}"}
                )
            with journal.open("a") as out:
                out.write(json.dumps({"from": first, "found": findings}) + "\n")
    findings = [fault for row in reported(journal) for fault in row["found"]]
    for fault in findings:
        print(
            json.dumps(fault),
            source(int(seed)) if (seed := fault["job"].removeprefix("fuzz ")).isdigit() else "",
            sep="\n",
        )
    assert not findings


def one_batch(first: int, last: int, level: str, scratch: Path) -> list[dict[str, Any]]:
    """Return the findings for this range of programs; none if this machine refuses the level."""
    completed = python(
        str(Path(__file__).with_name("fuzzing.py")),
        level,
        str(first),
        str(last),
        env={"TMPDIR": str(scratch), "PYTHONPATH": str(ROOT)},
    )
    if completed.returncode and "IsolationError" not in completed.stderr:
        return [{"job": f"of {first} to {last}", "level": level, "fault": completed.stderr[-2000:]}]
    return [json.loads(line) for line in completed.stdout.splitlines()]
