"""Measure few-shot adaptation: k examples in the prompt against training on the same k examples.

In: a start checkpoint, families with examples and held-out problems, an `Adaptation`. Out: one row
for each family, way and k, with intervals, and one JSON with all inputs needed to repeat it. Each
scorecard is stored as soon as it is measured, and its cell recorded as finished (loop.py).
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.trial import Trial
from pydantic import BaseModel, ConfigDict
from rich.console import Console

from artifacts.atomic import write_atomic
from artifacts.code_hash import hash_modules
from artifacts.hashing import hash_data, hash_folder
from artifacts.manifest import Manifest
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.few_shot import chat, few_shot, lacking
from evaluation.evaluate import evaluate
from evaluation.sampling import Sampling
from evaluation.scorecard import Scorecard
from evaluation.statistics.bounded_mean import mean_interval
from evaluation.statistics.hypothesis_tests import Interval, wilson
from experiments.loop import RunningCell, StudyRecord
from problems.schema import Problem
from resources.stage import CONTENT
from sandbox.sandbox import Sandbox
from verl_jobs.sft.adaptation import Adaptation, Way, learn

START = "start"  # the way without adaptation
ALL = "all families"


@dataclass(frozen=True)
class Family:
    """A family of problems: `examples` in their order of use, and `heldout`, disjoint from them.

    There are at least as many examples as the largest k.
    """

    name: str
    examples: tuple[Problem, ...]
    heldout: tuple[Problem, ...]


class AdaptationRow(BaseModel):
    """One row of the result.

    share: solved share of `tasks`. gain: difference of the share to the start's on the same tasks.
    Both have a 95 % interval. note: the reason if it was not measured.
    """

    model_config = ConfigDict(frozen=True)

    family: str
    way: str
    k: int
    tasks: int = 0
    share: float = 0.0
    interval: Interval = Interval(0.0, 0.0)
    gain: float = 0.0
    gain_interval: Interval = Interval(0.0, 0.0)
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class AdaptationStudy:
    """One comparison in its folder."""

    start: Path
    families: tuple[Family, ...]
    config: Adaptation
    sampling: Sampling
    folder: Path
    keep: bool = False  # the adapted checkpoints

    def run(
        self,
        sandbox: Sandbox,
        on_cell: Callable[[str, int, int], None] = lambda name, done, of: None,
    ) -> list[AdaptationRow]:
        """Measure the missing cells, write `result.json` and return its rows.

        on_cell is called with the cell's name, the number of cells done, and of all cells.
        """
        cells = {cell.name: cell for cell in self._cells()}
        record = StudyRecord(self.folder, "adapt", Console(quiet=True))

        def measure(trial: Trial) -> RunningCell:
            name = trial.user_attrs["cell"]
            on_cell(name, list(cells).index(name), len(cells))
            if excess := cells[name].excess:
                text = f"the prompt is {excess} tokens longer than the model's positions allow"
                trial.set_user_attr("note", text)
                return None
            yield from ()  # this cell waits for nothing
            return cells[name].measure(sandbox).pass_at_1

        record.run(record.named({name: name for name in cells}), measure)
        notes = {name: each.user_attrs.get("note", "") for name, each in record.cells.items()}
        rows = [
            row
            for family in [*(family.name for family in self.families), ALL]
            for row in self._rows(family, list(cells.values()), notes)
        ]
        write_atomic(self.folder / "result.json", json.dumps(self._result(rows), indent=1))
        return rows

    def _cells(self) -> Iterator[Cell]:
        for family in self.families:
            yield Cell(self, family, START, 0, 0)
            for k in self.config.shots:
                for way in self.config.ways:
                    yield from (
                        Cell(self, family, way, k, self.config.seed + seed)
                        for seed in range(self.config.seeds)
                    )

    def _rows(
        self, family: str, cells: Sequence[Cell], notes: Mapping[str, str]
    ) -> Iterator[AdaptationRow]:
        family_cells = [cell for cell in cells if family in (ALL, cell.family.name)]
        before = _mean_by_task([cell for cell in family_cells if cell.way == START])
        for way, k in dict.fromkeys((cell.way, cell.k) for cell in family_cells):
            group = [cell for cell in family_cells if (cell.way, cell.k) == (way, k)]
            if note := max(notes[cell.name] for cell in group):
                yield AdaptationRow(family=family, way=way, k=k, note=note)
                continue
            after = _mean_by_task(group)
            share = sum(after.values()) / len(after)
            gains = [after[task] - before[task] for task in after]
            binary = all(value in (0.0, 1.0) for value in after.values())
            interval = (
                wilson(round(sum(after.values())), len(after))
                if binary
                else mean_interval(list(after.values()))
            )
            yield AdaptationRow(
                family=family,
                way=way,
                k=k,
                tasks=len(after),
                share=share,
                interval=interval,
                gain=sum(gains) / len(gains),
                gain_interval=mean_interval(gains, -1.0, 1.0),
                seconds=sum(cell.seconds for cell in group),
            )

    def _result(self, rows: Sequence[AdaptationRow]) -> dict[str, Any]:
        inputs = {"start": hash_folder(self.start)} | {
            family.name: _hash(family) for family in self.families
        }
        config = {
            "adaptation": self.config.model_dump(mode="json"),
            "sampling": self.sampling.model_dump(),
            "start": str(self.start),
        }
        key = hash_data({"inputs": inputs, "config": config, "code": code()})
        manifest = Manifest(
            kind="reports",
            name="adaptation",
            key=key,
            content_hash="",
            inputs=inputs,
            config=config,
            seed=self.config.seed,
        )
        return {
            "rows": [row.model_dump() for row in rows],
            "reproduce": manifest.stamped().model_dump(mode="json"),
        }


@dataclass(frozen=True)
class Cell:
    """One measurement: a family, a way, k and a choice of examples.

    Its scorecard is stored under its name.
    """

    study: AdaptationStudy
    family: Family
    way: Way | str
    k: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.family.name}-{self.way}" + (f"-{self.k}-seed{self.seed}" if self.k else "")

    @property
    def path(self) -> Path:
        return self.study.folder / "cells" / f"{self.name}.json"

    @property
    def scorecard(self) -> Scorecard:
        return Scorecard.read(self.path)

    @property
    def seconds(self) -> float:
        """Return the seconds of training, generation and judging."""
        measured = self.scorecard.measured
        return measured.get("learning_s", 0.0) + measured["generation_s"] + measured["judging_s"]

    def examples(self) -> list[Problem]:
        """Return the first k examples from the seed's offset into the family's list.

        A larger k includes the examples of a smaller one.
        """
        examples = self.family.examples
        begin = (self.seed - self.study.config.seed) * max(self.study.config.shots)
        return [examples[(begin + index) % len(examples)] for index in range(self.k)]

    @property
    def benchmark(self) -> Benchmark:
        examples = self.examples() if self.way == "prompt" else []
        return few_shot(self.name, self.family.heldout, examples, self.study.sampling)

    @property
    def excess(self) -> int:
        """Return by how many tokens its prompt exceeds the model's positions."""
        return lacking(self.study.start, self.benchmark)

    def measure(self, sandbox: Sandbox) -> Scorecard:
        """Adapt, evaluate, store the scorecard and return it, unless it is stored already."""
        if self.path.exists():  # a kill came before the record had it
            return self.scorecard
        study, learning_s = self.study, 0.0
        checkpoint = study.start
        if self.way not in (START, "prompt"):
            checkpoint = study.folder / "adapted" / self.name
            shutil.rmtree(checkpoint, ignore_errors=True)
            began = time.perf_counter()
            learn(
                study.start,
                [chat(example) for example in self.examples()],
                self.way,  # type: ignore[arg-type]
                study.config,
                self.seed,
                checkpoint,
            )
            learning_s = time.perf_counter() - began
        weights = hash_folder(checkpoint)
        scorecard = evaluate(checkpoint, self.name, weights, self.benchmark, sandbox)
        measured = scorecard.measured | {"learning_s": learning_s}
        scorecard = scorecard.model_copy(update={"measured": measured})
        if checkpoint != study.start and not study.keep:
            shutil.rmtree(checkpoint)
        scorecard.write(self.path)
        return scorecard


def code() -> str:
    """Return the hash of the code that measures a cell."""
    return hash_modules(("experiments.adaptation",), CONTENT)


def study_id(
    start: Path, families: Sequence[Family], config: Adaptation, sampling: Sampling
) -> str:
    """Return an id derived from weights, problems and settings, under which a study resumes."""
    identity = [
        hash_folder(start),
        [_hash(family) for family in families],
        config.model_dump(mode="json"),
        sampling.model_dump(),
        code(),
    ]
    return hash_data(identity)[:12]


def _hash(family: Family) -> str:
    return hash_data(
        [
            family.name,
            [problem.content_hash for problem in family.examples],
            [problem.content_hash for problem in family.heldout],
        ]
    )


def _mean_by_task(cells: Sequence[Cell]) -> dict[str, float]:
    """Map each task to the share of the cells that solve it."""
    by_task: dict[str, list[bool]] = {}
    for cell in cells:
        for task, solved in cell.scorecard.solved.items():
            by_task.setdefault(task, []).append(solved)
    return {task: sum(solved) / len(solved) for task, solved in by_task.items()}
