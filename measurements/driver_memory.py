"""Memory of the process that decides over a whole set in `ratchet data clean`.

    python -m measurements.driver_memory --problems 10000 100000 1000000

The problems are those of measurements/data.py: 1 % of each part are copies of others in it. They
count as verified, so the sandbox runs nothing; there are no gated problems. Two worker processes
scan the parts and write the shards; each size has a driver process of its own. RSS is the highest
resident memory of the driver alone, and its part that is not backed by files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from artifacts.folder import Folder
from measurements.data import copied, varied
from problems.cleaning.curation import Curation
from problems.dataset.partitioned import Rules, clean
from problems.dataset.parts import ROWS, split
from problems.dataset.shards import parquet_bytes
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


class Peak(threading.Thread):
    """Sample the memory of this process that is not backed by files."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.anonymous = 0

    def run(self) -> None:
        while True:
            lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
            kib = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.anonymous = max(self.anonymous, kib * 1024)
            time.sleep(0.05)


def measure(count: int, folder: str) -> dict[str, float]:
    """Clean a prepared set in this process and two workers."""
    two = partial(parallel_map, processes=2)
    start, peak = time.perf_counter(), Peak()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak.start()
    cleaned = clean(f"{folder}/in", f"{folder}/out", two, RULES)
    return {
        "problems": count,
        "kept": cleaned.stages[1].went_out,
        "seconds": time.perf_counter() - start,
        "before": before,
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "anonymous": peak.anonymous,
    }


def prepare(count: int, folder: str) -> None:
    chunks = [(number, min(CHUNK, count - at)) for number, at in enumerate(range(0, count, CHUNK))]
    list(parallel_map(partial(write_input, folder), chunks, 2))
    out = f"{folder}/out"
    parts = split(Folder(f"{folder}/in"), Folder(out), ROWS, (), RULES.verification.how)
    list(parallel_map(partial(accept, out), parts, 2))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(int(arguments.one[0]), arguments.one[1])))
        return
    print(f"Load at the start {os.getloadavg()[0]:.1f}.\n")
    print("| problems | kept | s | RSS, MiB | not backed by files, MiB | growth, bytes a problem |")
    print("|---|---|---|---|---|---|")
    last: dict[str, float] = {}
    for count in arguments.problems:
        with tempfile.TemporaryDirectory() as folder:
            prepare(count, folder)
            command = [
                sys.executable,
                "-m",
                "measurements.driver_memory",
                "--one",
                str(count),
                folder,
            ]
            output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        facts = json.loads(output.splitlines()[-1])
        growth = (
            f"{(facts['rss'] - last['rss']) / (count - last['problems']):.0f} "
            f"({(facts['anonymous'] - last['anonymous']) / (count - last['problems']):.0f})"
            if last
            else ""
        )
        print(
            f"| {count:,} | {facts['kept']:,} | {facts['seconds']:.0f} "
            f"| {facts['rss'] / 2**20:.0f} | {facts['anonymous'] / 2**20:.0f} | {growth} |",
            flush=True,
        )
        last = facts


if __name__ == "__main__":
    main()
