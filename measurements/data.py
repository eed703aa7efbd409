"""Speed, memory and recall of duplicate and contamination detection on generated problems.

    python -m measurements.data --problems 20000 100000 1000000

The problems have statements of words sampled by Zipf's law in sentence frames, programs of random
statements, and three calls as tests. 1 % of them are planted copies of others: verbatim, renamed,
with a tenth of the words replaced, or with reordered tests. 2,000 more are gated, and 0.1 % of the
problems copy a gated one. Each size runs in its own process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import psutil

from problems.cleaning.contamination import GatedIndex
from problems.cleaning.duplicates import duplicates
from problems.schema import Problem

SYLLABLES = [
    a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "on", "ut")
]
FRAMES = (
    "Write a function that takes {} and returns {}.",
    "Given {}, find {} such that {}.",
    "You are given {}. Your task is to compute {} for {}.",
    "Implement {} so that {} holds whenever {}.",
    "For {} and {}, decide whether {}.",
)
CALLS = ("len", "sum", "max", "min", "abs", "sorted", "list", "set", "str", "int")
GATED = 2000


def vocabulary(rng: random.Random, size: int = 30_000) -> tuple[list[str], list[float]]:
    """Return words and their cumulative weights; the n-th word has frequency 1 / n."""
    words = sorted({"".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(2 * size)})
    rng.shuffle(words)
    total, weights = 0.0, []
    for rank in range(1, size + 1):
        total += 1 / rank
        weights.append(total)
    return words[:size], weights


def varied(count: int, seed: int, source: str) -> Iterator[Problem]:
    """Generate unrelated problems in one vocabulary."""
    rng = random.Random(f"{seed}/{source}")
    words, weights = vocabulary(random.Random(seed))
    for number in range(count):
        phrases = [
            " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(4, 9)))
            for _ in range(12)
        ]
        statement = " ".join(
            rng.choice(FRAMES).format(*phrases[at : at + 3])
            for at in range(0, 3 * rng.randint(1, 3), 3)
        )
        tests = tuple(
            {
                "args": [rng.randint(-(10**6), 10**6), rng.choices(range(1000), k=4)],
                "expected": rng.randint(0, 10**6),
            }
            for _ in range(3)
        )
        yield Problem(
            f"{source}/{number}",
            source,
            statement,
            "call",
            tests,
            "f",
            solutions=(program(rng, words),),
            licence="MIT",
        )


def program(rng: random.Random, words: Sequence[str]) -> str:
    """Return a function of three to ten random statements, which need not run."""
    names = ["first", "second"]
    lines = [f"def f({', '.join(names)}):"]
    for _ in range(rng.randint(3, 10)):
        one, two, call, sign, number = (
            rng.choice(names),
            rng.choice(names),
            rng.choice(CALLS),
            rng.choice("+-*%|&"),
            rng.randint(0, 99),
        )
        expressions = (
            f"{call}({one}) {sign} {number}",
            f"[part {sign} {number} for part in {one}]",
            f"{one} if {two} < {number} else {two}.{rng.choice(words)}({number})",
            f"{call}({one}, {two})",
            f"{{{one}: {number} for part in range({two})}}",
            f"{one}[{number}:{number // 3}] {sign} {two}",
        )
        names.append(rng.choice(words))
        lines.append(f"    {names[-1]} = {rng.choice(expressions)}")
    return "\n".join([*lines, f"    return {names[-1]}"])


def copied(problem: Problem, number: int, rng: random.Random) -> Problem:
    """Return a copy, by `number` verbatim, renamed, reworded or with reordered tests."""
    copy = replace(problem, problem_id=f"planted/{number}", source="planted", gated=False)
    match number % 4:
        case 1:
            return replace(
                copy,
                solutions=(
                    problem.solutions[0]
                    .replace("first", "alpha")
                    .replace("second", "omega")
                    .replace("def f(", "def g("),
                ),
            )
        case 2:
            words = [word if rng.random() > 0.1 else "other" for word in problem.statement.split()]
            return replace(copy, statement=" ".join(words))
        case 3:
            return replace(copy, tests=problem.tests[::-1], statement=f"Now: {problem.statement}")
    return copy


def generated(
    count: int, seed: int = 1
) -> tuple[list[Problem], list[Problem], dict[str, str], dict[str, str]]:
    """Return problems, gated problems, and the ids of planted copies with their originals' ids:
    first the copies of problems, then those of gated problems.
    """
    rng = random.Random(seed)
    gated = [replace(problem, gated=True) for problem in varied(GATED, seed, "gated")]
    problems = list(varied(count - count // 100 - count // 1000, seed, "varied"))
    twins, leaks = dict[str, str](), dict[str, str]()
    for number in range(count // 100 + count // 1000):
        is_twin = number < count // 100
        original = (
            problems[rng.randrange(min(len(problems), count // 300 or 1))]
            if is_twin
            else rng.choice(gated)
        )  # clusters of about four
        problems.append(copied(original, number, rng))
        (twins if is_twin else leaks)[problems[-1].problem_id] = original.problem_id
    rng.shuffle(problems)
    return problems, gated, twins, leaks


def measure(count: int, processes: int) -> dict[str, float]:
    """Return seconds, GiB and numbers of detections for one size."""
    peak = Peak()
    peak.start()
    start = time.perf_counter()
    problems, gated, twins, leaks = generated(count)
    facts: dict[str, float] = {
        "problems": count,
        "made_s": time.perf_counter() - start,
        "made_gib": peak.sample(),
    }
    start, cpu_start = time.perf_counter(), peak.cpu_s()
    duplicate_groups = duplicates(problems, processes)
    facts["duplicates_s"], facts["duplicates_cpu_s"] = (
        time.perf_counter() - start,
        peak.cpu_s() - cpu_start,
    )
    group = {
        problem_id: at
        for at, one in enumerate(duplicate_groups.groups)
        for problem_id in (one.kept, *(member.problem_id for member in one.others))
    }
    facts["planted"], facts["found"] = (
        len(twins),
        sum(copy in group and group[copy] == group.get(twin) for copy, twin in twins.items()),
    )
    copies = twins.keys() | leaks.keys()
    facts["besides"] = sum(
        not {one.kept, member.problem_id} & copies
        for one in duplicate_groups.groups
        for member in one.others
    )
    facts["capped"] = duplicate_groups.capped
    facts["uncompared"] = duplicate_groups.uncompared
    start, cpu_start = time.perf_counter(), peak.cpu_s()
    pairs = {
        (overlap.problem_id, overlap.gated_id)
        for overlap in GatedIndex(gated).overlaps(problems, processes)
        if overlap.leak
    }
    facts["contamination_s"], facts["contamination_cpu_s"] = (
        time.perf_counter() - start,
        peak.cpu_s() - cpu_start,
    )
    facts["leaks"], facts["leaks_found"] = (
        len(leaks),
        sum((copy, task) in pairs for copy, task in leaks.items()),
    )
    facts["leaks_besides"] = len({problem for problem, _ in pairs} - leaks.keys())
    return facts | {"peak_gib": peak.sample()}


class Peak(threading.Thread):
    """Sample this process and its descendants five times a second.

    gib: the highest sum of their resident memory. CPU seconds are less sensitive to a busy machine
    than wall time.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.gib, self.cpu_by_pid = 0.0, dict[int, float]()

    def sample(self) -> float:
        own = psutil.Process()
        rss = 0
        for process in (own, *own.children(recursive=True)):
            with contextlib.suppress(psutil.Error):  # the process has ended
                rss += process.memory_info().rss
                self.cpu_by_pid[process.pid] = sum(process.cpu_times()[:2])
        self.gib = max(self.gib, rss / 2**30)
        return self.gib

    def cpu_s(self) -> float:
        self.sample()
        return sum(self.cpu_by_pid.values())

    def run(self) -> None:
        while True:
            self.sample()
            time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.processes)))
        return
    print(f"Load at the start {os.getloadavg()[0]:.1f}, {arguments.processes} processes.\n")
    head = (
        "problems",
        "duplicates, s (CPU)",
        "contamination, s (CPU)",
        "GiB (problems alone)",
        "planted detected, others",
        "leaks detected, others",
    )
    print(f"| {' | '.join(head)} | capped, not compared |")
    print("|---|---|---|---|---|---|---|")
    for count in arguments.problems:
        command = [
            sys.executable,
            "-m",
            "measurements.data",
            "--one",
            str(count),
            "--processes",
            str(arguments.processes),
        ]
        facts = json.loads(
            subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True
            ).stdout.splitlines()[-1]
        )
        cells = (
            f"{count:,}",
            *(
                f"{facts[f'{stage}_s']:.0f} ({facts[f'{stage}_cpu_s']:.0f})"
                for stage in ("duplicates", "contamination")
            ),
            f"{facts['peak_gib']:.1f} ({facts['made_gib']:.1f})",
            f"{facts['found']} of {facts['planted']}, {facts['besides']}",
            f"{facts['leaks_found']} of {facts['leaks']}, {facts['leaks_besides']}",
            f"{facts['capped']}, {facts['uncompared']:,}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
