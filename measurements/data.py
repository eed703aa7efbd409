"""Duplicates and contamination in bulk: seconds, memory, what is found of planted clusters, what is
found besides.

    python -m measurements.data --problems 20000 100000 1000000 [--semhash PYTHON]

Varied problems (statements of words drawn by Zipf's law in sentence frames, programs of random
statements, three calls as tests); 1 % of them are copies of others: verbatim, renamed, a tenth of
the words replaced, tests in another order. 2,000 more are gated, and a thousandth of the problems
copies one. Each size runs in a process of its own. `--semhash` names the python of an environment
with `semhash`, which is given the same statements and, since its model may not be at hand, an
encoder of ours: signed hashes of words and pairs of words in 256 dimensions.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

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
SEMHASH = """
import json, sys, time, zlib, resource
import numpy as np
from semhash import SemHash
class Projections:
    def encode(self, texts, **_):
        out = np.zeros((len(texts), 256), np.float32)
        for row, text in enumerate(texts):
            words = text.lower().split()
            for run in words + [a + ' ' + b for a, b in zip(words, words[1:])]:
                at = zlib.crc32(run.encode()); out[row, at % 256] += 1 if at & 65536 else -1
        return out / np.maximum(1e-9, np.linalg.norm(out, axis=1, keepdims=True))
texts = json.load(open(sys.argv[1]))
start = time.perf_counter()
result = SemHash.from_records(texts, model=Projections()).self_deduplicate(threshold=0.9)
print(json.dumps({"seconds": time.perf_counter() - start, "gone": len(texts) - len(result.selected),
                  "rss_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
"""


def vocabulary(rng: random.Random, size: int = 30_000) -> tuple[list[str], list[float]]:
    """Words and their cumulative weights, the n-th as frequent as 1 / n."""
    words = sorted({"".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(2 * size)})
    rng.shuffle(words)
    total, weights = 0.0, []
    for rank in range(1, size + 1):
        total += 1 / rank
        weights.append(total)
    return words[:size], weights


def varied(count: int, seed: int, source: str) -> Iterator[Problem]:
    """Problems that have nothing in common but the language."""
    rng = random.Random(f"{seed}/{source}")
    words, weights = vocabulary(random.Random(seed))
    for number in range(count):
        said = [
            " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(4, 9)))
            for _ in range(12)
        ]
        statement = " ".join(
            rng.choice(FRAMES).format(*said[at : at + 3])
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
    """A function of three to ten random statements; it need not do anything sensible."""
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
    """Verbatim, renamed, re-worded or with tests in another order, in turns."""
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


def made(
    count: int, seed: int = 1
) -> tuple[list[Problem], list[Problem], dict[str, str], dict[str, str]]:
    """Problems, gated ones, and what each planted copy is a copy of: a problem, or a gated one."""
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


def measured(count: int, processes: int) -> dict[str, float]:
    """Seconds, memory and finds of one size."""
    peak = Peak()
    peak.start()
    start = time.perf_counter()
    problems, gated, twins, leaks = made(count)
    facts: dict[str, float] = {
        "problems": count,
        "made_s": time.perf_counter() - start,
        "made_gib": peak.look(),
    }
    start, spent = time.perf_counter(), peak.cpu_s()
    found = duplicates(problems, processes)
    facts["duplicates_s"], facts["duplicates_cpu_s"] = (
        time.perf_counter() - start,
        peak.cpu_s() - spent,
    )
    group = {
        problem_id: at
        for at, one in enumerate(found.groups)
        for problem_id in (one.kept, *(member.problem_id for member in one.others))
    }
    facts["planted"], facts["found"] = (
        len(twins),
        sum(copy in group and group[copy] == group.get(twin) for copy, twin in twins.items()),
    )
    copies = twins.keys() | leaks.keys()
    facts["besides"] = sum(
        not {one.kept, member.problem_id} & copies for one in found.groups for member in one.others
    )
    facts["capped"], facts["uncompared"] = found.capped, found.uncompared
    start, spent = time.perf_counter(), peak.cpu_s()
    pairs = {
        (overlap.problem_id, overlap.gated_id)
        for overlap in GatedIndex(gated).overlaps(problems, processes)
        if overlap.leak
    }
    facts["contamination_s"], facts["contamination_cpu_s"] = (
        time.perf_counter() - start,
        peak.cpu_s() - spent,
    )
    facts["leaks"], facts["leaks_found"] = (
        len(leaks),
        sum((copy, task) in pairs for copy, task in leaks.items()),
    )
    facts["leaks_besides"] = len({problem for problem, _ in pairs} - leaks.keys())
    return facts | {"peak_gib": peak.look()}


class Peak(threading.Thread):
    """Of this process and all that it started, looked at five times a second: the most GiB that
    they held together, and their seconds of processor time, which a busy machine does not stretch
    so much.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.gib, self.spent = 0.0, dict[int, float]()

    def look(self) -> float:
        own = psutil.Process()
        held = 0
        for process in (own, *own.children(recursive=True)):
            with contextlib.suppress(psutil.Error):  # gone meanwhile
                held += process.memory_info().rss
                self.spent[process.pid] = sum(process.cpu_times()[:2])
        self.gib = max(self.gib, held / 2**30)
        return self.gib

    def cpu_s(self) -> float:
        self.look()
        return sum(self.spent.values())

    def run(self) -> None:
        while True:
            self.look()
            time.sleep(0.2)


def semhash(count: int, python: str) -> dict[str, float]:
    """The same statements through semhash: near-duplicates of statements alone."""
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.json"
        texts.write_text(
            json.dumps([problem.statement for problem in made(count)[0]]), encoding="utf-8"
        )
        ended = subprocess.run(
            [python, "-c", SEMHASH, str(texts)], capture_output=True, text=True, check=True
        )
    facts: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--semhash", metavar="PYTHON", default="")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.one, given.processes)))
        return
    print(f"Load at the start {os.getloadavg()[0]:.1f}, {given.processes} processes.\n")
    head = (
        "problems",
        "duplicates, s (CPU)",
        "contamination, s (CPU)",
        "GiB (problems alone)",
        "planted found, besides",
        "leaks found, besides",
    )
    print(f"| {' | '.join(head)} | capped, left out |")
    print("|---|---|---|---|---|---|---|")
    for count in given.problems:
        command = [
            sys.executable,
            __file__,
            "--one",
            str(count),
            "--processes",
            str(given.processes),
        ]
        f = json.loads(
            subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True
            ).stdout.splitlines()[-1]
        )
        cells = (
            f"{count:,}",
            *(
                f"{f[f'{stage}_s']:.0f} ({f[f'{stage}_cpu_s']:.0f})"
                for stage in ("duplicates", "contamination")
            ),
            f"{f['peak_gib']:.1f} ({f['made_gib']:.1f})",
            f"{f['found']} of {f['planted']}, {f['besides']}",
            f"{f['leaks_found']} of {f['leaks']}, {f['leaks_besides']}",
            f"{f['capped']}, {f['uncompared']:,}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)
        if given.semhash:
            beside = semhash(count, given.semhash)
            print(
                (
                    f"semhash, statements alone: {beside['seconds']:.0f} s, "
                    f"{beside['rss_gib']:.1f} GiB, {beside['gone']} taken for duplicates"
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
