"""Compare Ratchet's verdicts with those of upstream harnesses, sample by sample.

    python -m measurements.parity [humaneval+] [mbpp+] [bigcodebench]     all three by default

The samples of a task are its canonical solution, a mutant, and canonical solutions whose results
are changed so that only an exact comparison notices: another type, a slightly different float, a
subclass, numpy, deep recursion, state between calls. humaneval+ adds ten of CodeT's samples per
task. Ratchet's verdicts come from `ratchet evaluate`. Samples with different verdicts are judged
once more by upstream, one at a time, because its timeout depends on the load; differences that
remain are printed. BigCodeBench: all tasks, with the same packages for both harnesses, and
published samples if the data folder has them (`bigcodebench_samples/*.jsonl`, as upstream releases
them). Upstream does not confine programs: use a machine that you can lose. All files are stored
under `.ratchet/parity/`.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from measurements.harnesses import ENVIRONMENTS, python_of
from measurements.programs import DATA, codet
from problems.verification.mutants import mutants

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "humaneval+": ("evalplus", "humaneval", DATA / "humanevalplus/HumanEvalPlus.jsonl.gz"),
    "mbpp+": ("evalplus", "mbpp", DATA / "mbppplus/MbppPlus.jsonl.gz"),
    "bigcodebench": ("bigcodebench", "complete", DATA / "bigcodebench/BigCodeBench.jsonl.gz"),
}
SAMPLES = DATA / "bigcodebench_samples"
# Without a network but the loopback, and without a view of processes that a program could end.
ALONE = [
    *("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-c", 'ip link set lo up && exec "$0" "$@"'),
]
# Its canonical solution returns gigabytes: docs/measurements/parity.md.
LEFT_OUT = {"Mbpp/255"}
WORKERS = 2
CHANGES = (
    "list(x) if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else x",
    "float(x) if isinstance(x, int) else x",
    "x + 1e-7 if isinstance(x, float) else x",
    "x * (1 + 5e-8) if isinstance(x, (int, float)) and not isinstance(x, bool) else x",
    "iter(x) if isinstance(x, (list, tuple, str, set)) else x",
    (
        "collections.Counter(x) if isinstance(x, dict) else set(x) if isinstance(x, list) and "
        "all(isinstance(i, (int, str)) for i in x) else x"
    ),
    (
        "numpy.array(x) if isinstance(x, (list, tuple)) else numpy.float64(x) if isinstance(x, "
        "(int, float)) else x"
    ),
    "decimal.Decimal(x) if isinstance(x, (int, float)) else x",
    "int(x) if isinstance(x, bool) else bool(x) if x in (0, 1) else x",
    "[i + 1e-9 if isinstance(i, float) else i for i in x] if isinstance(x, list) else x",
    "sorted(x, key=str) if isinstance(x, list) else x",
    "str(x)",
    "x or None",
    "(print('y' * 100000), x)[1]",
    (
        "type('Str', (str,), {})(x) if isinstance(x, str) else type('Int', (int,), {})(x) if "
        "isinstance(x, int) else x"
    ),
    "x[:-1] if isinstance(x, (list, tuple, str)) else x",
    "(input() if calls.append(1) or len(calls) > 3 else x)",
    (
        "frozenset(x) if isinstance(x, set) else dict(sorted(x.items(), key=str)) if "
        "isinstance(x, dict) else x"
    ),
    "deep(950, x)",
    "deep(985, x)",
    "(calls.append(1), x if len(calls) < 9 else None)[1]",
)
CHANGED = """{program}
import collections, decimal, numpy
calls = []
def deep(n, x):
    return x if n == 0 else deep(n - 1, x)
_inner_ = {name}
def {name}(*args):
    x = _inner_(*args)
    return {change}
"""


def samples_of(name: str, rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the benchmark's samples: `task_id` and `solution`, the program to judge."""
    rng, samples = random.Random(0), []
    for at, row in enumerate(rows):
        task, entry = row["task_id"], row["entry_point"]
        program = (
            row["code_prompt" if name == "bigcodebench" else "prompt"] + row["canonical_solution"]
        )
        wrong = mutants(program, 6, entry)
        texts = [program, *(each.source for each in rng.sample(wrong, min(1, len(wrong))))]
        if name != "bigcodebench":
            texts += [
                CHANGED.format(
                    program=program, name=entry, change=CHANGES[(2 * at + k) % len(CHANGES)]
                )
                for k in range(2)
            ]
        samples += [{"task_id": task, "solution": text} for text in texts]
    for file in sorted(SAMPLES.glob("*.jsonl")) if name == "bigcodebench" else ():
        samples += [
            {"task_id": row["task_id"], "solution": row["solution"]}
            for row in map(json.loads, file.read_text().splitlines())
        ]
    if name == "humaneval+":
        samples += [
            {"task_id": each.name.split("#")[0], "solution": each.source}
            for each in codet()
            if int(each.name.split("#")[1]) < 10
        ]
    return samples


def compare(name: str) -> int:
    """Judge the benchmark's samples with both and print the result. Return how many differ."""
    harness, dataset, source = FILES[name]
    folder = ENVIRONMENTS / name
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        row
        for row in map(json.loads, gzip.decompress(source.read_bytes()).splitlines())
        if row["task_id"] not in LEFT_OUT
    ]
    data, samples = folder / "data.jsonl", folder / "samples.jsonl"
    _write(data, rows)
    _write(samples, samples_of(name, rows))
    ours = _ours(name, data, samples, folder / "ours.jsonl")
    theirs = _theirs(harness, dataset, data, samples, folder / "upstream.jsonl", WORKERS)
    keys = ("base", "plus") if harness == "evalplus" else ("base",)
    measured = {at: row for at, row in ours.items() if row["base"] is not None}
    differ = [
        at for at, row in measured.items() if any(row[key] != theirs[at][key] for key in keys)
    ]
    if differ:
        differ = _repeat(
            harness,
            dataset,
            data,
            samples,
            differ=differ,
            ours=measured,
            theirs=theirs,
            folder=folder,
            keys=keys,
        )
    for key in keys:
        passed = [sum(bool(rows[at][key]) for at in measured) for rows in (ours, theirs)]
        print(
            f"{name} {key}: {len(measured)} samples, {passed[0]} pass with ratchet, "
            f"{passed[1]} with {harness}"
        )
    print(f"{name}: {len(ours) - len(measured)} not measured, {len(differ)} different verdicts")
    for at in differ:
        print(
            f"  {at[0]}#{at[1]}: ratchet {[measured[at][key] for key in keys]} "
            f"{measured[at]['detail']!r}, {harness} {theirs[at]['said']!r}"
        )
    return len(differ)


Verdicts = dict[tuple[str, int], dict[str, Any]]  # by task and sample


def _repeat(
    harness: str,
    dataset: str,
    data: Path,
    samples: Path,
    *,
    differ: Any,
    ours: Verdicts,
    theirs: Verdicts,
    folder: Path,
    keys: Any,
) -> Any:
    """Judge the samples in `differ` once more with upstream, one at a time. Updates `theirs` and
    returns the samples that still differ.
    """
    repeated = set(differ)
    count: dict[str, int] = {}
    rows = []
    for row in map(json.loads, samples.read_text().splitlines()):
        at = (row["task_id"], count.get(row["task_id"], 0))
        count[row["task_id"]] = at[1] + 1
        if at in repeated:
            rows.append((at, row))
    tasks = {at[0] for at in repeated}
    task_data = folder / "again.data.jsonl"
    _write(
        task_data,
        [row for row in map(json.loads, data.read_text().splitlines()) if row["task_id"] in tasks],
    )
    _write(folder / "again.jsonl", [row for _, row in rows])
    verdicts = _theirs(
        harness, dataset, task_data, folder / "again.jsonl", folder / "again.upstream.jsonl", 1
    )
    count = {}
    for at, _ in rows:
        theirs[at] = verdicts[at[0], count.get(at[0], 0)]
        count[at[0]] = count.get(at[0], 0) + 1
    return [at for at in differ if any(ours[at][key] != theirs[at][key] for key in keys)]


def _ours(name: str, data: Path, samples: Path, out: Path) -> Verdicts:
    files = ["--completions", str(samples), "--data", str(data), "--out", str(out)]
    commands = [["evaluate", "--benchmark", name, *files]]
    if name == "bigcodebench":
        commands.insert(0, ["benchmarks", "install", name])
    env = os.environ | {"PYTHONPATH": str(ROOT), "RATCHET_HOME": str(ENVIRONMENTS / "home")}
    for command in commands:
        subprocess.run([sys.executable, "-m", "cli.main", *command], check=True, cwd=ROOT, env=env)
    return _read(out)


def _theirs(
    harness: str, dataset: str, data: Path, samples: Path, out: Path, workers: int
) -> Verdicts:
    script = Path(__file__).with_name("upstream.py")
    command = [
        *(ALONE if harness == "bigcodebench" else ()),
        str(python_of(harness)),
        str(script),
        harness,
        dataset,
        str(data),
        str(samples),
        str(out),
        str(workers),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return _read(out)


def _read(path: Path) -> Verdicts:
    return {
        (row["task_id"], row["sample"]): row
        for row in map(json.loads, path.read_text().splitlines())
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def main() -> None:
    sys.exit(1 if sum(compare(name) for name in sys.argv[1:] or FILES) else 0)


if __name__ == "__main__":
    main()
