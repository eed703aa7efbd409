"""Share of leaks found, and of different problems removed, beside n-grams, MinHash and embeddings.

    python -m measurements.contamination --outside FOLDER [--out FINDINGS.jsonl] [--alone]

FOLDER has checkouts of three public repositories: lm-sys/llm-decontaminator (HumanEval rephrased,
pairs of HumanEval and CodeAlpaca that GPT-4 judged), amazon-science/recode (statements translated
and back) and exercism/python. Edited programs and look-alikes are made here. Rows have no tests;
their ids name no benchmark. The limits were set mainly on rows with an even number; the last
column is of the others. `RATCHET_DATA` names the folder of the benchmarks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from measurements.edited_programs import edited, reworked
from problems.cleaning.behaviour import called
from problems.cleaning.contamination import GatedIndex
from problems.cleaning.leaks import find_leaks
from problems.cleaning.meaning import embed
from problems.cleaning.minhash import jaccard, shingles
from problems.cleaning.prose import prose
from problems.cleaning.similarity import squeezed
from problems.schema import Problem
from problems.sources.registry import load
from problems.syntax import definitions
from sandbox.sandbox import Sandbox

DATA = Path(
    os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
)
ALPACA = "llm-decontaminator/data/database/CodeAlpacaDB.jsonl"
RECODE = (
    "recode/dataset-release/perturbed_finalized/{0}/full/nlaugmenter/{0}_BackTranslation_s0.jsonl"
)
SWAPS = {
    "even": "odd", "smallest": "largest", "minimum": "maximum", "first": "last", "upper": "lower",
    "positive": "negative", "sum": "product", "left": "right", "increasing": "decreasing",
    "shortest": "longest", "union": "intersection", "square": "cube",
}  # fmt: skip
JACCARD, COSINE = 0.5, 0.8  # thresholds of the baselines


@dataclass(frozen=True)
class Row:
    """A row, its kind, and the task that it repeats or was compared with, if any."""

    kind: str
    problem: Problem
    task: str = ""


IDS: list[str] = []  # the kinds so far: an id names no benchmark


def row(kind: str, number: int, statement: str, program: str = "", task: str = "") -> Row:
    if kind not in IDS:
        IDS.append(kind)
    problem = Problem(
        f"row-{IDS.index(kind)}-{number}",
        "rows",
        statement or "(none)",
        "assert",
        (),
        solutions=(program,) if program else (),
    )
    return Row(kind, replace(problem, entry_point=called(problem)), task)


def read(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def same(outside: Path, gated: dict[str, Problem]) -> Iterator[Row]:
    """Yield rows that repeat a gated task."""
    rephrased = read(outside / "llm-decontaminator/data/rephrase/humaneval_python.jsonl")
    for at, line in enumerate(rephrased):
        if definitions(text := line["text"]):
            yield row("rephrased, with program", at, text, text, f"humaneval/{at}")
            yield row("rephrased, statement alone", at, prose(text), "", f"humaneval/{at}")
    for name in ("humaneval", "mbpp"):
        for at, line in enumerate(read(outside / RECODE.format(name))):
            task = gated.get(f"{name}/{line['task_id'].rpartition('/')[2]}")
            text = prose(line["prompt"])
            if task and squeezed(text) != squeezed(prose(task.statement)):
                yield row(f"translated and back, {name}", at, text, "", task.problem_id)
    rng = random.Random(3)
    tasks = [task for task in gated.values() if task.source in ("humaneval", "mbpp")]
    statements = [one.statement for one in load("mbpp", DATA / "mbpp").problems if not one.gated]
    for kind, edit in (("three edits", edited), ("three other edits", reworked)):
        for at, task in enumerate(rng.sample(tasks, 240)):
            program = re.sub(rf"\b{task.entry_point}\b", "solve_it", edit(task.solutions[0], rng))
            yield row(
                f"program alone, {kind}", at, rng.choice(statements), program, task.problem_id
            )
    for at, task in enumerate(one for one in gated.values() if one.source == "leetcode"):
        yield row("LeetCode without examples", at, prose(task.statement), "", task.problem_id)


def judged(outside: Path) -> Iterator[Row]:
    """Yield programs of CodeAlpaca with the HumanEval task nearest to each, as GPT-4 judged it."""
    for at, line in enumerate(read(outside / ALPACA)):
        kind = f"CodeAlpaca, judged {'the same' if line['results'][0] else 'different'}"
        yield row(kind, at, line["train"][0], line["train"][0], f"humaneval/{at}")


def different(outside: Path, gated: dict[str, Problem]) -> Iterator[Row]:
    """Yield rows that repeat no gated task, as far as their authors meant."""
    for at, folder in enumerate(sorted((outside / "python/exercises/practice").iterdir())):
        statement, program = folder / ".docs/instructions.md", folder / ".meta/example.py"
        if statement.exists() and program.exists():
            text = statement.read_text(encoding="utf-8")
            yield row("exercism", at, text, program.read_text(encoding="utf-8"))
    swapped = [
        re.sub(rf"\b{word}\b", other, task.statement)
        for task in gated.values()
        if task.source == "mbpp"
        for word, other in SWAPS.items()
        if re.search(rf"\b{word}\b", task.statement)
    ]
    known = {squeezed(task.statement) for task in gated.values()}
    texts = sorted({text for text in swapped if squeezed(text) not in known})
    for at, text in enumerate(random.Random(5).sample(texts, 60)):
        yield row("one word swapped", at, text)


Method = Callable[[Sequence[Row], Sequence[Problem]], list[set[str]]]


def tokens(problem: Problem) -> list[str]:
    text = f"{problem.statement}\n{problem.solutions[0] if problem.solutions else ''}"
    return re.findall(r"\w+", text.lower())


def n_grams(size: int) -> Method:
    """Return the method that takes one common run of `size` words as a leak."""

    def tasks_of(rows: Sequence[Row], gated: Sequence[Problem]) -> list[set[str]]:
        known = defaultdict[tuple[str, ...], set[str]](set)
        for task in gated:
            for run in runs(tokens(task)):
                known[run].add(task.problem_id)
        return [set().union(*(known.get(run, ()) for run in runs(tokens(r.problem)))) for r in rows]

    def runs(words: list[str]) -> Iterator[tuple[str, ...]]:
        return (tuple(words[at : at + size]) for at in range(len(words) - size + 1))

    return tasks_of


def min_hash(rows: Sequence[Row], gated: Sequence[Problem]) -> list[set[str]]:
    """Compare by the Jaccard similarity of runs of three words, which MinHash estimates."""
    known = {task.problem_id: shingles(tokens(task), (3,)) for task in gated}
    own = [shingles(tokens(one.problem), (3,)) for one in rows]
    return [
        {task for task, hashes in known.items() if jaccard(mine, hashes) >= JACCARD} for mine in own
    ]


def embeddings(rows: Sequence[Row], gated: Sequence[Problem]) -> list[set[str]]:
    """Compare by the cosine of sentence embeddings of statement and program."""
    texts = [" ".join([one.statement, *one.solutions[:1]]) for one in gated]
    own = [" ".join([r.problem.statement, *r.problem.solutions[:1]]) for r in rows]
    near = embed(own) @ embed(texts).T >= COSINE
    return [{gated[int(at)].problem_id for at in np.flatnonzero(line)} for line in near]


def lexical(rows: Sequence[Row], gated: Sequence[Problem]) -> list[set[str]]:
    """Compare by Ratchet's words, programs and tests alone."""
    leaks = defaultdict[str, set[str]](set)
    for overlap in GatedIndex(gated).overlaps([one.problem for one in rows]):
        if overlap.leak:
            leaks[overlap.problem_id].add(overlap.gated_id)
    return [leaks[one.problem.problem_id] for one in rows]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--outside", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--alone", action="store_true", help="without the other methods")
    arguments = parser.parse_args()
    gated = {
        task.problem_id: task
        for name in ("humaneval", "mbpp", "leetcode")
        for task in load(name, DATA / name).problems
        if task.gated
    }
    outside, tasks = arguments.outside, list(gated.values())
    rows = [*same(outside, gated), *judged(outside), *different(outside, gated)]

    def ratchet(rows: Sequence[Row], gated: Sequence[Problem]) -> list[set[str]]:
        with Sandbox() as sandbox:
            journal = arguments.out.with_suffix(".journal") if arguments.out else None
            findings = find_leaks([one.problem for one in rows], gated, sandbox, journal=journal)
        if arguments.out:
            lines = [json.dumps(asdict(finding)) + "\n" for finding in findings]
            arguments.out.write_text("".join(lines), encoding="utf-8")
        return [
            {finding.gated_id, *finding.also} if finding.verdict == "leak" else set()
            for finding in findings
        ]

    methods: dict[str, Method] = {
        "8-gram": n_grams(8),
        "13-gram": n_grams(13),
        f"MinHash {JACCARD}": min_hash,
        f"embedding {COSINE}": embeddings,
        "Ratchet, words and programs": lexical,
        "Ratchet": ratchet,
    }
    if arguments.alone:
        methods = {"Ratchet": ratchet}
    print(f"{len(rows)} rows, {len(tasks)} gated tasks, load {os.getloadavg()[0]:.1f}\n")
    results, seconds = dict[str, list[set[str]]](), dict[str, tuple[float, float]]()
    for name, method in methods.items():
        start, cpu = time.perf_counter(), sum(os.times()[:4])
        results[name] = method(rows, tasks)
        seconds[name] = time.perf_counter() - start, sum(os.times()[:4]) - cpu
    print(f"| rows | number | {' | '.join(methods)} | odd rows |\n|{'---|' * (len(methods) + 3)}")
    for kind in dict.fromkeys(one.kind for one in rows):
        places = [at for at, one in enumerate(rows) if one.kind == kind]

        def count(name: str, places: Sequence[int]) -> str:
            every = sum(bool(results[name][at]) for at in places)
            right = sum(rows[at].task in results[name][at] for at in places)
            return f"{right} ({every})" if rows[places[0]].task else str(every)

        odd = [at for at in places if int(rows[at].problem.problem_id.rpartition("-")[2]) % 2]
        cells = [
            *(count(name, places) for name in methods),
            f"{count('Ratchet', odd)} of {len(odd)}",
        ]
        print(f"| {kind} | {len(places)} | {' | '.join(cells)} |")
    cells = [f"{wall:.0f} ({cpu:.0f})" for wall, cpu in seconds.values()]
    print(f"| seconds (CPU) | {len(rows)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
