"""Judge a file of samples with evalplus or bigcodebench. Imports nothing of Ratchet.

Run by an interpreter that has the harness: `python upstream.py HARNESS DATASET DATA SAMPLES
VERDICTS WORKERS`. DATA is the benchmark's own file. Packages that only generation needs are
replaced by stubs. Writes a line per sample: task_id, sample, base, plus (evalplus only), the
harness's message (`said`), and the seconds of the complete run.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import sys
import time
import types
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
MEMORY_MB = 6 * 1024  # upstream allows 30 GB
SLOW_IMPORTS = ("matplotlib.pyplot", "pandas", "scipy.stats", "seaborn", "sklearn.ensemble")


def evalplus(dataset: str, data: Path, samples: Path, workers: int) -> tuple[float, Rows]:
    os.environ["HUMANEVAL_OVERRIDE_PATH" if dataset == "humaneval" else "MBPP_OVERRIDE_PATH"] = str(
        data
    )
    os.environ["XDG_CACHE_HOME"] = str(samples.parent / "cache")
    sys.modules["datasets"] = types.SimpleNamespace(load_dataset=None)  # type: ignore[assignment]
    from evalplus.evaluate import evaluate  # type: ignore[import-not-found]

    results = samples.with_name(samples.name.replace(".jsonl", "_eval_results.json"))
    results.unlink(missing_ok=True)
    begun = time.perf_counter()
    evaluate(dataset, samples=str(samples), parallel=workers)
    seconds = time.perf_counter() - begun
    rows: Rows = []
    for task, verdicts in json.loads(results.read_text())["eval"].items():
        for number, verdict in enumerate(verdicts):
            base, plus = verdict["base_status"] == "pass", verdict["plus_status"] == "pass"
            rows.append(
                {
                    "task_id": task,
                    "sample": number,
                    "base": base,
                    "plus": base and plus,
                    "said": f"{verdict['base_status']}/{verdict['plus_status']}",
                }
            )
    return seconds, rows


def bigcodebench(dataset: str, data: Path, samples: Path, workers: int) -> tuple[float, Rows]:
    """Judge the samples in any order. A run that was stopped continues from its journal."""
    journal = samples.with_name(f"{samples.stem}.journal.jsonl")
    rows = (
        [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    )
    judged = {(row["task_id"], row["sample"]) for row in rows}
    problems = {row["task_id"]: row for row in map(json.loads, data.read_text().splitlines())}
    count: Counter[str] = Counter()
    jobs = []
    for sample in map(json.loads, samples.read_text().splitlines()):
        task = sample["task_id"]
        if (task, count[task]) not in judged:
            jobs.append((problems[task], sample["solution"], count[task]))
        count[task] += 1
    begun = time.perf_counter()
    for name in SLOW_IMPORTS:  # each program runs in a fork of this process
        importlib.import_module(name)
    with (
        ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool,
        journal.open("a") as file,
    ):
        for row in pool.map(_check, jobs):
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
    journal.unlink()
    return time.perf_counter() - begun, rows


def _check(job: tuple[dict[str, Any], str, int]) -> dict[str, Any]:
    """Judge one sample with upstream's calibration and limits, but less memory."""
    from bigcodebench.eval import PASS, untrusted_check  # type: ignore[import-not-found]

    problem, solution, sample = job
    program = problem["code_prompt"] + "\n    pass\n" + solution
    status, details = untrusted_check(
        program, problem["test"], problem["entry_point"], MEMORY_MB, MEMORY_MB, 10, 1, 20
    )
    why = next(iter(details.values()), "").strip().splitlines()[-1:] if details else []
    return {
        "task_id": problem["task_id"],
        "sample": sample,
        "base": status == PASS,
        "said": f"{status} {' '.join(why)}"[:200],
    }


def main() -> None:
    name, dataset, data, samples, verdicts, workers = sys.argv[1:]
    seconds, rows = {"evalplus": evalplus, "bigcodebench": bigcodebench}[name](
        dataset, Path(data), Path(samples), int(workers)
    )
    Path(verdicts).write_text(
        "".join(json.dumps(row | {"seconds": round(seconds, 1)}) + "\n" for row in rows)
    )


if __name__ == "__main__":
    main()
