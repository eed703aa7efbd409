"""One checkpoint's result on one benchmark, with what it takes to reproduce it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from artifacts.hashing import hash_data
from evaluation.statistics import Interval, wilson


class Sample(BaseModel):
    """One answer to one task and its verdict."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    sample: int = 0
    answer: str
    program: str
    verdict: str
    passed: int = 0
    total: int = 0
    cut: bool = False  # the answer ended by length
    first_failed: str = ""  # the first test it fails, as a person reads it, where the statement shows that test; hidden tests stay hidden
    failed_test: int = 0  # number of the first test it fails, from 1; 0 where none is told (evaluation/taxonomy.py)
    raised: str = ""  # the type of exception that it ended with
    tags: tuple[str, ...] = ()


class Scorecard(BaseModel):
    model_config = ConfigDict(frozen=True)

    benchmark: str
    benchmark_version: str  # content hash of the tasks
    harness_version: str
    checkpoint: str  # name, e.g. "chain-0001-step-30"
    checkpoint_hash: str
    sampling: dict[str, Any]  # temperature, n, max_new_tokens, stop, seed
    samples: tuple[Sample, ...]
    isolation: str
    measured: dict[str, float] = {}  # seconds, tokens: outside the hash

    @property
    def solved(self) -> dict[str, bool]:
        """First sample of each task: solved or not. INFRA raises: a score over tasks that nobody judged is none."""
        if broken := [s.task_id for s in self.samples if s.verdict == "INFRA"]:
            raise ValueError(f"{self.benchmark}: {len(broken)} answers have no verdict, the first for {broken[0]}: evaluate again")
        return {s.task_id: s.verdict == "AC" for s in self.samples if s.sample == 0}

    @property
    def pass_at_1(self) -> float:
        solved = self.solved
        return sum(solved.values()) / len(solved)

    @property
    def interval(self) -> Interval:
        """Of pass@1, 95 %, by Wilson's formula."""
        solved = self.solved
        return wilson(sum(solved.values()), len(solved))

    @property
    def cut(self) -> float:
        """Share of all answers that ended by their length."""
        return sum(sample.cut for sample in self.samples) / len(self.samples)

    @property
    def content_hash(self) -> str:
        """sha256 over all but what was measured on the clock: the same answers and verdicts give the same hash on a slower day."""
        return hash_data(self.model_dump(mode="json", exclude={"measured"}))

    def solved_by(self, tag: str) -> dict[str, tuple[int, int]]:
        """For each tag that starts with `tag` (such as "operations-"): tasks solved, tasks in all."""
        solved = self.solved
        groups: dict[str, list[bool]] = {}
        for sample in self.samples:
            if sample.sample == 0:
                for name in (t for t in sample.tags if t.startswith(tag)):
                    groups.setdefault(name, []).append(solved[sample.task_id])
        return {name: (sum(group), len(group)) for name, group in sorted(groups.items())}

    def write(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=1), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Scorecard:
        return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
