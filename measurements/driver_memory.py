"""Memory of the process that decides over a whole set in `ratchet data clean`.

    python -m measurements.driver_memory --problems 10000 100000
    python -m measurements.driver_memory --steps 100000 1000000

The problems are those of measurements/data.py: 1 % of each part are copies of others in it. They
count as verified, so the sandbox runs nothing; there are no gated problems. Two worker processes
scan the parts and write the shards; each size has a driver process of its own. RSS is the highest
resident memory of the driver alone, and its part that is not backed by files.

`--steps` measures the driver's two steps without workers, so that a million problems take minutes:
the search for duplicates among random signatures, where one in a hundred repeats another's
statement; and the writing of the files, from one real shard that is read many times.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from artifacts.folder import Folder
from measurements.data import copied, varied
from problems.cleaning.curation import Curation, doubled
from problems.cleaning.duplicates import Marks, Rank, find
from problems.cleaning.minhash import PERMUTATIONS
from problems.cleaning.similarity import Sketch
from problems.dataset.dataset_files import write_files
from problems.dataset.evidence import Evidence
from problems.dataset.partitioned import SHARD, Rules, clean
from problems.dataset.parts import ROWS, split
from problems.dataset.shards import Shards, parquet_bytes, write_shard
from problems.dataset.whole_set import PartScan, WholeSet
from problems.funnel import Stage
from problems.parallel import parallel_map
from problems.schema import to_table
from sandbox.sandbox import SandboxConfig

CHUNK = 10 * ROWS  # problems of an input file
RULES = Rules(curation=Curation(english=False, least_words=0), sandbox=SandboxConfig(workers=1))


def write_input(folder: str, chunk: tuple[int, int]) -> None:
    """Write one input file: a number and a count of problems."""
    number, count = chunk
    rng = random.Random(number)
    copies = count // 100
    problems = [
        replace(problem, problem_id=f"varied/{number}-{at}", source="varied")
        for at, problem in enumerate(varied(count - copies, 1, f"chunk{number}"))
    ]
    for at in range(copies):
        copy = copied(rng.choice(problems[: max(1, count // 300)]), at, rng)
        problems.append(replace(copy, problem_id=f"planted/{number}-{at}"))
    rng.shuffle(problems)
    Folder(folder).write(f"in/chunk-{number:05}.parquet", parquet_bytes(to_table(problems)))


def accept(folder: str, part: str) -> None:
    """Make a part verified, as if every problem had passed."""
    target = Folder(folder)
    target.write(f"verified/{part}.json", b'{"removed": [], "isolation": []}')
    target.write(f"verified/{part}", target.read(f"arrived/{part}"))


def status(name: str) -> int:
    """Return a figure of this process in bytes. The peak of getrusage includes its parent's."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


class Peak(threading.Thread):
    """Sample the memory of this process that is not backed by files."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.anonymous = 0

    def run(self) -> None:
        while True:
            self.anonymous = max(self.anonymous, status("RssAnon"))
            time.sleep(0.05)


def measure(count: int, folder: str) -> dict[str, float]:
    """Clean a prepared set in this process and two workers."""
    two = partial(parallel_map, processes=2)
    start, peak = time.perf_counter(), Peak()
    peak.start()
    clean(f"{folder}/in", f"{folder}/out", two, RULES)
    return {
        "problems": count,
        "seconds": time.perf_counter() - start,
        "rss": status("VmHWM"),
        "anonymous": peak.anonymous,
    }


def prepare(count: int, folder: str) -> None:
    chunks = [(number, min(CHUNK, count - at)) for number, at in enumerate(range(0, count, CHUNK))]
    list(parallel_map(partial(write_input, folder), chunks, 2))
    out = f"{folder}/out"
    parts = split(Folder(f"{folder}/in"), Folder(out), ROWS, (), RULES.verification.how)
    list(parallel_map(partial(accept, out), parts, 2))


def search(count: int, folder: str) -> None:
    """Find the duplicates among random signatures, part by part as from workers."""
    rng = np.random.default_rng(1)
    whole = WholeSet(Path(folder))
    for first in range(0, count, ROWS):
        size = min(ROWS, count - first)
        keys = rng.integers(1, 2**63, size).astype(np.uint64)
        copies = size // 100
        keys[:copies] = keys[copies : 2 * copies]
        ids = [f"varied/{first + at}" for at in range(size)]
        signatures = rng.integers(0, 2**32, (2, size, PERMUTATIONS), np.uint32)
        marks = Marks(
            [Rank(2, False, -3, -1, name) for name in ids],
            keys,
            rng.integers(1, 2**63, size).astype(np.uint64),
            np.zeros(size, bool),
            [()] * size,
        )
        nothing, owners = np.empty(0, np.uint64), np.arange(size)
        sketch = Sketch(
            signatures[0], signatures[1], owners, nothing, nothing, np.empty(0, np.int64)
        )
        part = f"part-{first // ROWS:05}.parquet"
        whole.add(PartScan(part, [], [], [], list(range(size)), marks, sketch, [], Counter()))
    assert whole.index() is None
    ranked = whole.rank()
    found = find(ranked, whole.sketched, lambda places: whole.wholes)
    whole.remove(removed for group in found.groups(ranked) for removed in doubled(group))
    whole.shards(SHARD)
    print(whole.stages()[1].removed_count, "removed", file=sys.stderr)


def write(count: int, folder: str) -> None:
    """Write the files of a dataset; its shard was prepared by another process."""
    shards = Shards(Folder(folder), ["shard"] * (count // SHARD))
    evidence = Evidence([], set(), {}, [], 0, 0)
    write_files(shards, [], evidence, [Stage("clean", count, count)], Path(folder) / "out")


def write_one_shard(folder: str) -> None:
    """Write a shard of real problems."""
    write_shard(list(varied(SHARD, 1, "varied")), Folder(folder), "shard")


def measure_step(step: str, count: int, folder: str) -> dict[str, float]:
    """Run one step in this process."""
    start, peak = time.perf_counter(), Peak()
    peak.start()
    {"search": search, "write": write}[step](count, folder)
    return {
        "problems": count,
        "seconds": time.perf_counter() - start,
        "rss": status("VmHWM"),
        "anonymous": peak.anonymous,
    }


def print_steps(counts: list[int]) -> None:
    """Print a row for each step and size."""
    print("| step | problems | s | RSS, MiB | not backed by files, MiB | growth, bytes a problem |")
    print("|---|---|---|---|---|---|")
    for step in ("search", "write"):
        last: dict[str, float] = {}
        for count in counts:
            with tempfile.TemporaryDirectory() as folder:
                if step == "write":
                    write_one_shard(folder)
                facts = run_alone(["--step", step, str(count), folder])
            print(row(facts, last, step), flush=True)
            last = facts


def run_alone(options: list[str]) -> dict[str, float]:
    """Run this script in a process of its own, and return what it measured."""
    command = [sys.executable, "-m", "measurements.driver_memory", *options]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    facts: dict[str, float] = json.loads(output.splitlines()[-1])
    return facts


def row(facts: dict[str, float], last: dict[str, float], *cells: str) -> str:
    """Return a row of the table. last: the facts of the smaller set, for the growth."""
    growth = ""
    if last:
        more = facts["problems"] - last["problems"]
        growth = (
            f"{(facts['rss'] - last['rss']) / more:.0f} "
            f"({(facts['anonymous'] - last['anonymous']) / more:.0f})"
        )
    figures = (
        f"{facts['problems']:,}",
        f"{facts['seconds']:.0f}",
        *(f"{facts[name] / 2**20:.0f}" for name in ("rss", "anonymous")),
        growth,
    )
    return f"| {' | '.join([*cells, *figures])} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, nargs="+", default=[])
    parser.add_argument("--steps", type=int, nargs="+", default=[])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(int(arguments.one[0]), arguments.one[1])))
        return
    if arguments.step:
        step, count, folder = arguments.step
        print(json.dumps(measure_step(step, int(count), folder)))
        return
    print(f"Load at the start {os.getloadavg()[0]:.1f}.\n")
    if arguments.problems:
        print("| problems | s | RSS, MiB | not backed by files, MiB | growth, bytes a problem |")
        print("|---|---|---|---|---|")
    last: dict[str, float] = {}
    for count in arguments.problems:
        with tempfile.TemporaryDirectory() as folder:
            prepare(count, folder)
            facts = run_alone(["--one", str(count), folder])
        print(row(facts, last), flush=True)
        last = facts
    if arguments.steps:
        print_steps(arguments.steps)


if __name__ == "__main__":
    main()
