"""100,000 verdicts on honest and hostile completions through the reward function of one process.

None hangs, no attack is paid with trust `apart`, no completion lacks a score, and memory does not
grow.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil
import pytest

from measurements.programs import DATA, humaneval
from rewards.functions import RewardFunctions
from sandbox.sandbox import SandboxConfig
from tests.sandbox.soaking import CORPUS

FOLDER = Path(__file__).resolve().parents[2] / ".ratchet" / "soak"
BATCH = 100
SHARE = 0.05  # of the completions that are hostile
SHORT = {"wall_s": 1.0, "cpu_s": 1.0}  # of hostile completions: most run until a limit
HANGS_S = 1800.0  # for a batch, also on a machine with a load of 30
KEPT = ("style", "entry_point", "limits", "tolerance")
GROWTH = 1.15  # of memory from the first to the last tenth

pytestmark = pytest.mark.skipif(
    not (CORPUS / "manifest.json").exists() or not DATA.exists(),
    reason="set RATCHET_HOSTILE to the hostile programs and RATCHET_DATA to the public data",
)


@dataclass(frozen=True)
class Case:
    task: str
    completion: str
    solves: bool


@pytest.mark.soak
def test_100_000_verdicts() -> None:
    """Resumes from its journal. RATCHET_SOAK_VERDICTS stops it earlier."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    soak(FOLDER / "rewards.jsonl", int(os.environ.get("RATCHET_SOAK_VERDICTS", "100000")))


def soak(journal: Path, total: int) -> None:
    tasks = journal.with_name("tasks.jsonl")
    rows, honest, hostile = problems()
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    reward = RewardFunctions(tasks, sandbox=SandboxConfig(workers=2))
    done, process, begun = len(rows_of(journal)) * BATCH, psutil.Process(), time.monotonic()
    memory = []
    with ThreadPoolExecutor(1) as pool, journal.open("a", encoding="utf-8") as file:
        for start in range(done, total, BATCH):
            draw = random.Random(start)  # a resumed soak draws what is missing
            cases = [
                draw.choice(hostile if draw.random() < SHARE else honest) for _ in range(BATCH)
            ]
            pairs = [(case.task, case.completion) for case in cases]
            scores = pool.submit(reward.scores, pairs).result(HANGS_S)
            row = {
                "forged": sum(
                    score.solved and not score.shared and not case.solves
                    for case, score in zip(cases, scores, strict=True)
                ),
                "refused": sum(
                    case.solves and not score.solved
                    for case, score in zip(cases, scores, strict=True)
                ),
                "infra": sum(score.value is None for score in scores),
                "hostile": sum(case in hostile for case in cases),
                "rss": sum(memory_of(process)),
            }
            memory.append(row["rss"])
            file.write(json.dumps(row) + "\n")
            file.flush()
    print(
        f"{total} verdicts, {total - done} of them in {time.monotonic() - begun:.0f} s, "
        f"{memory[:1]} to {memory[-1:]} bytes"
    )
    results = rows_of(journal)
    totals = {name: sum(row[name] for row in results) for name in ("forged", "refused", "infra")}
    assert totals == {"forged": 0, "refused": 0, "infra": 0}
    if (tenth := len(memory) // 10) > 1:  # else it was resumed at its end
        assert fmean(memory[-tenth:]) < GROWTH * fmean(memory[1 : tenth + 1])


def rows_of(journal: Path) -> list[dict[str, Any]]:
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def memory_of(process: psutil.Process) -> Iterator[int]:
    """Yield the resident bytes of this process, its workers and their zygotes."""
    for each in (process, *process.children(recursive=True)):
        try:
            yield each.memory_info().rss
        except psutil.NoSuchProcess:  # a program that has just ended
            continue


def problems() -> tuple[list[Mapping[str, Any]], Sequence[Case], Sequence[Case]]:
    """Return the tasks, honest completions (right and wrong), and hostile ones."""
    corpus = json.loads((CORPUS / "problems.json").read_text(encoding="utf-8"))
    rows: list[Mapping[str, Any]] = []
    for name, problem in corpus.items():
        tests = problem["tests"]
        if isinstance(tests, str):
            tests = [{"source": tests}]
        row = {key: problem[key] for key in KEPT if problem.get(key)}
        row |= {"problem_id": name, "statement": problem["prompt"], "tests": tests}
        short = {"problem_id": f"short_{name}", "limits": problem["limits"] | SHORT}
        rows += [row, row | short]
    honest: list[Case] = []
    hostile: list[Case] = []
    for entry in json.loads((CORPUS / "manifest.json").read_text(encoding="utf-8")):
        source = (CORPUS / "programs" / entry["file"]).read_bytes().decode("utf-8", "replace")
        solves = entry["family"] == "control"
        task = entry["problem"] if solves else f"short_{entry['problem']}"
        case = Case(task, f"```python\n{source}\n```", solves)
        (honest if solves else hostile).append(case)
    for program in humaneval():
        name = program.name.replace("/", "_")
        rows.append({
            "problem_id": name, "statement": name, "style": "assert",
            "entry_point": program.entry, "tests": [{"source": program.test}],
        })  # fmt: skip
        wrong = f"def {program.entry}(*_):\n    return None\n"
        honest += [Case(name, program.source, True), Case(name, wrong, False)]
    return rows, honest, hostile
