"""Verification of the public data sets, and its throughput.

    python -m measurements.verification HOME [--sets ...] [--seconds N] [--throughput ROUNDS]

Prints for each set the number of accepted problems, the reasons for rejections, the strength of the
tests and how many problems were strengthened. Verdicts are stored in HOME, and the next call
continues with a set that was not finished within its seconds. Problems are ordered by a hash, so
that a part is a random sample. `--throughput` compares programs per second of verification with
those of the bare sandbox on the same jobs. `RATCHET_DATA` names the folder of the sets.
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

from problems.embedded.compositional import FamilyConfig, generate
from problems.funnel import Stage, funnel
from problems.registry import load
from problems.schema import Problem
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
    problems = load(name, DATA / folder if folder else None).problems
    return sorted(
        problems, key=lambda problem: hashlib.sha256(problem.problem_id.encode()).digest()
    )


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def verify_set(
    name: str, home: Path, sandbox: Sandbox, rules: Verification, seconds: float
) -> tuple[Stage, list[Strength]]:
    """Verify as much of a set as the seconds allow; stored verdicts take almost no time."""
    remaining, accepted, removed, strength = problems_of(name), 0, [], list[Strength]()
    total, begun = len(remaining), time.monotonic()
    while remaining and time.monotonic() - begun < seconds:
        chunk, remaining = remaining[:CHUNK], remaining[CHUNK:]
        result = verify(chunk, sandbox, home / f"{name}.jsonl", rules)
        accepted += len(result.problems)
        removed += result.removed
        strength += result.strength
    elapsed, done = time.monotonic() - begun, total - len(remaining)
    print(f"{name}: {done} of {total} in {elapsed:.0f} s", file=sys.stderr, flush=True)
    stage = Stage(f"{name}, {done} of {total}", accepted + len(removed), accepted, tuple(removed))
    return stage, strength


class RecordingSandbox:
    """A sandbox that records the jobs it runs."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.jobs = sandbox, list[Job]()

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterable[Report]:
        return self.sandbox.run(self._recorded(jobs, repeat), repeat)

    def _recorded(self, jobs: Iterable[Job], repeat: int) -> Iterable[Job]:
        for job in jobs:
            self.jobs += [job] * repeat
            yield job


def throughput(name: str, problems: Sequence[Problem], workers: int | None, rounds: int) -> None:
    """Print programs per second of verification and of the bare sandbox.

    Both alternate, so that other load slows both; the best round of each counts.
    """
    ours, bare = [], []
    with Sandbox(SandboxConfig(workers=workers)) as sandbox:
        for _ in range(rounds):
            recorded = RecordingSandbox(sandbox)
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
    parser.add_argument("home", type=Path, help="folder of the stored verdicts")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="per set; a chunk that has begun is finished"
    )
    parser.add_argument("--mutants", type=int, default=Verification().mutants)
    parser.add_argument("--workers", type=int)
    parser.add_argument(
        "--throughput",
        type=int,
        metavar="ROUNDS",
        default=0,
        help="measure throughput instead, on compositions and a part of each set",
    )
    arguments = parser.parse_args()
    if arguments.throughput:
        throughput(
            "compositions",
            generate(FamilyConfig(demonstrations=200, train=200, validation=20)),
            arguments.workers,
            arguments.throughput,
        )
        for name in arguments.sets:
            throughput(name, problems_of(name)[:PART], arguments.workers, arguments.throughput)
        return
    rules = Verification(mutants=arguments.mutants)
    with Sandbox(SandboxConfig(workers=arguments.workers)) as sandbox:
        results = [
            verify_set(name, arguments.home, sandbox, rules, arguments.seconds)
            for name in arguments.sets
        ]
    rows = [row for _, strength in results for row in strength]
    one_reference = {
        name: sum(row.references == 1 for row in strength)
        for name, (_, strength) in zip(arguments.sets, results, strict=True)
    }
    print(funnel([stage for stage, _ in results]))
    cells = [(*row, one_reference[str(row[0])]) for row in by_source(rows)]
    print("\n" + table((*HEAD, "one reference"), cells))
    print("\n" + table(WEAKEST, weakest(rows, 25)))


if __name__ == "__main__":
    main()
