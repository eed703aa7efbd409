"""Seconds to judge HumanEval+, compared with evalplus: `python -m measurements.evaluation [TASKS]`.

Judges ten of CodeT's samples per task with `ratchet evaluate` and with `evalplus.evaluate` 0.3.1 on
the same number of workers. Both have computed their expected outputs before. Then `ratchet
evaluate` runs again, with its verdicts cached. TASKS: only the first tasks.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from measurements.harnesses import ENVIRONMENTS, python_of
from measurements.programs import DATA, codet

ROOT = Path(__file__).resolve().parent.parent
WORKERS = len(os.sched_getaffinity(0))


def main() -> None:
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else 164
    folder = ENVIRONMENTS / f"speed-{limit}"
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(
        map(
            json.loads,
            gzip.decompress(
                (DATA / "humanevalplus/HumanEvalPlus.jsonl.gz").read_bytes()
            ).splitlines(),
        )
    )[:limit]
    data, one, ten = folder / "data.jsonl", folder / "one.jsonl", folder / "ten.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one.write_text(
        "".join(
            json.dumps(
                {"task_id": row["task_id"], "solution": row["prompt"] + row["canonical_solution"]}
            )
            + "\n"
            for row in rows
        )
    )
    tasks = {row["task_id"] for row in rows}
    samples = [
        (each.name.split("#")[0], each.source)
        for each in codet()
        if int(each.name.split("#")[1]) < 10
    ]
    ten.write_text(
        "".join(
            json.dumps({"task_id": task, "solution": source}) + "\n"
            for task, source in samples
            if task in tasks
        )
    )
    home = folder / "home"
    subprocess.run(["rm", "-rf", str(home)], check=True)
    ratchet(one, data, home)
    ours, cached = ratchet(ten, data, home), ratchet(ten, data, home)
    evalplus(one, data, folder)
    theirs = evalplus(ten, data, folder)
    print(
        f"{len(samples) * limit // 164} samples of {limit} tasks, {WORKERS} workers, load "
        f"{os.getloadavg()[0]:.1f}"
    )
    print(
        f"ratchet evaluate {ours:.1f} s, cached {cached:.1f} s; evalplus.evaluate {theirs:.1f} s "
        f"(ratio {ours / theirs:.2f})"
    )


def ratchet(samples: Path, data: Path, home: Path) -> float:
    """Return the seconds of the complete command."""
    command = [
        sys.executable,
        "-m",
        "cli.main",
        "evaluate",
        "--benchmark",
        "humaneval+",
        "--completions",
        str(samples),
        "--data",
        str(data),
    ]
    begun = time.perf_counter()
    subprocess.run(
        command,
        check=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "RATCHET_HOME": str(home)},
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - begun


def evalplus(samples: Path, data: Path, folder: Path) -> float:
    """Return the seconds of the complete command."""
    script = Path(__file__).with_name("upstream.py")
    command = [
        python_of("evalplus"),
        script,
        "evalplus",
        "humaneval",
        data,
        samples,
        folder / "said.jsonl",
        str(WORKERS),
    ]
    begun = time.perf_counter()
    subprocess.run(
        list(map(str, command)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
