"""The real sets through verification: `python -m measurements.verification HOME [--sets ...]
[--seconds N] [--throughput]`.

Prints for each set what was kept and why not the others, how strong its tests are and how many
problems were strengthened. Resumable: verdicts are kept in HOME, and a set for which the seconds do
not suffice is taken further by the next call; problems come in the order of a hash, so that a part
is a fair sample. `--throughput`: programs a second of verification beside those of the bare sandbox
on the very same jobs. `RATCHET_DATA` names the folder of the sets.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from problems.funnel import Stage, funnel
from problems.schema import Problem
from problems.sources.compositional import FamilyConfig, generate
from problems.sources.registry import load
from problems.verification.strength import HEAD, WEAKEST, Strength, by_source, weakest
from problems.verification.verification import Verification, verify
from sandbox.protocol import Job, Report
from sandbox.sandbox import Sandbox, SandboxConfig

DATA = Path(
    os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
)
SETS = {
    "simple": None,
    "humaneval": "humaneval",
    "mbpp": "mbpp",
    "mbpp_sanitized": "mbpp",
    "codecontests": "codecontests",
    "leetcode_train": "leetcode",
    "leetcode": "leetcode",
    "mbppplus": "mbppplus",
    "humanevalplus": "humanevalplus",
}  # source and folder
CHUNK = 24
PART = 240  # problems of a set, for the throughput


def problems_of(name: str) -> list[Problem]:
    folder = SETS[name]
    found = load(name, DATA / folder if folder else None).problems
    return sorted(found, key=lambda problem: hashlib.sha256(problem.problem_id.encode()).digest())


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def verified(
    name: str, home: Path, sandbox: Sandbox, rules: Verification, seconds: float
) -> tuple[Stage, list[Strength]]:
    """As much of a set as the time allows, or as is known already."""
    waiting, kept, removed, strength = problems_of(name), 0, [], list[Strength]()
    total, begun = len(waiting), time.monotonic()
    while waiting and time.monotonic() - begun < seconds:
        chunk, waiting = waiting[:CHUNK], waiting[CHUNK:]
        found = verify(chunk, sandbox, home / f"{name}.jsonl", rules)
        kept += len(found.problems)
        removed += found.removed
        strength += found.strength
    took = time.monotonic() - begun
    print(f"{name}: {total - len(waiting)} of {total} in {took:.0f} s", file=sys.stderr, flush=True)
    return Stage(
        f"{name}, {total - len(waiting)} of {total}", kept + len(removed), kept, tuple(removed)
    ), strength


class Recorded:
    """The sandbox, with the jobs that it was given."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.jobs = sandbox, list[Job]()

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterable[Report]:
        return self.sandbox.run(self._noted(jobs, repeat), repeat)

    def _noted(self, jobs: Iterable[Job], repeat: int) -> Iterable[Job]:
        for job in jobs:
            self.jobs += [job] * repeat
            yield job


def throughput(name: str, problems: Sequence[Problem], workers: int | None, rounds: int) -> None:
    """Taking turns, so that whatever else runs slows both alike; the best round of each counts."""
    ours, bare = [], []
    with Sandbox(SandboxConfig(workers=workers)) as sandbox:
        for _ in range(rounds):
            recorded = Recorded(sandbox)
            with tempfile.TemporaryDirectory() as folder:
                begun = time.perf_counter()
                verify(problems, recorded, Path(folder) / "journal")
                ours.append(len(recorded.jobs) / (time.perf_counter() - begun))
            begun = time.perf_counter()
            assert sum(1 for _ in sandbox.run(recorded.jobs)) == len(recorded.jobs)
            bare.append(len(recorded.jobs) / (time.perf_counter() - begun))
    print(
        f"{len(recorded.jobs)} jobs of {len(problems)} problems of {name}, {rounds} rounds, "
        f"load {os.getloadavg()[0]:.0f}"
    )
    rows = [
        (name, f"{max(rates):.0f}", " ".join(f"{rate:.0f}" for rate in rates))
        for name, rates in (("verification", ours), ("bare sandbox", bare))
    ]
    print(table(("", "jobs a second, best round", "each round"), rows))
    print(f"verification runs at {max(ours) / max(bare):.0%} of the bare sandbox")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path, help="where verdicts are kept")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="for each set, until the next chunk begins"
    )
    parser.add_argument("--mutants", type=int, default=Verification().mutants)
    parser.add_argument("--workers", type=int)
    parser.add_argument(
        "--throughput",
        type=int,
        metavar="ROUNDS",
        default=0,
        help="instead: of compositions and of a part of each set",
    )
    given = parser.parse_args()
    if given.throughput:
        throughput(
            "compositions",
            generate(FamilyConfig(demonstrations=200, train=200, validation=20)),
            given.workers,
            given.throughput,
        )
        for name in given.sets:
            throughput(name, problems_of(name)[:PART], given.workers, given.throughput)
        return
    rules = Verification(mutants=given.mutants)
    with Sandbox(SandboxConfig(workers=given.workers)) as sandbox:
        found = [verified(name, given.home, sandbox, rules, given.seconds) for name in given.sets]
    rows = [row for _, strength in found for row in strength]
    alone = {
        name: sum(row.references == 1 for row in strength)
        for name, (_, strength) in zip(given.sets, found, strict=True)
    }
    print(funnel([stage for stage, _ in found]))
    print(
        "\n"
        + table((*HEAD, "one reference"), [(*row, alone[str(row[0])]) for row in by_source(rows)])
    )
    print("\n" + table(WEAKEST, weakest(rows, 25)))


if __name__ == "__main__":
    main()
