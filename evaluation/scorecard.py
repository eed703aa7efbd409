"""One checkpoint's result on one benchmark, with what it takes to reproduce it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from artifacts.hashing import hash_data
from artifacts.store import write_atomic


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
    # the first failed test in words, if the statement shows that test; hidden tests stay hidden
    first_failed: str = ""
    # number of the first failed test, from 1; 0 if unknown (evaluation/judging/failure_kinds.py)
    failed_test: int = 0
    raised: str = ""  # the type of exception that it ended with
    tags: tuple[str, ...] = ()
    sets: dict[
        str, bool
    ] = {}  # of tests that are told apart (base, plus): which it passes; AC passes all
    whole: bool = True  # the answer stands for itself; else it goes on from the task's prompt
    detail: str = ""  # why it fails, in a person's words

    def passes(self, tests: str = "") -> bool:
        """All tests, or those of one set."""
        return self.sets[tests] if tests else self.verdict == "AC"


class Origin(BaseModel):
    """The arguments of `ratchet evaluate --benchmark`: with them the completions are judged again,
    or generated again if they are missing.
    """

    model_config = ConfigDict(frozen=True)

    benchmark: str  # as it was named: humaneval+, livecodebench@..., or a YAML file
    data: str  # the benchmark's file
    completions: str = ""  # the file that held the answers; else a model was asked:
    model: str = ""  # a folder or hub id; with an endpoint its name there
    endpoint: str = ""
    form: str = "auto"
    sanitized: bool = False  # answers were cut as evalplus.sanitize does
    made_with: dict[str, Any] = {}  # code, packages, hardware


class Scorecard(BaseModel):
    """Verdicts of one model, task by task; scores, comparisons and reports are made from these."""

    model_config = ConfigDict(frozen=True)

    benchmark: str
    benchmark_version: str  # content hash of the tasks
    harness_version: str
    checkpoint: str  # name, e.g. "chain-0001-step-30"; of a file of answers, the file's
    checkpoint_hash: str  # empty where nobody knows the weights
    sampling: dict[
        str, Any
    ]  # temperature, n, max_new_tokens, stop, seed; empty where a file does not say
    samples: tuple[Sample, ...]
    isolation: str
    source: str = (
        ""  # of the tasks, as the data rooms call it, where it is not the benchmark's name
    )
    release: str = ""  # of the benchmark's file
    partial: tuple[str, ...] = ()  # tasks that nothing answers: the score is over the others
    unmeasured: dict[
        str, str
    ] = {}  # tasks that this machine cannot judge, with the reason; no sample is theirs
    prompts: dict[str, str] = {}  # what each task asked
    origin: Origin | None = None  # None: a checkpoint of the home, whose passport tells
    measured: dict[str, float] = {}  # seconds, tokens: outside the hash

    @property
    def tests(self) -> tuple[str, ...]:
        """The sets of tests that are told apart, narrowest first; none where all are one."""
        return tuple(self.samples[0].sets)

    @property
    def keeps_answers(self) -> bool:
        """Whether the answers are in it; somebody may have left them out."""
        return any(sample.answer or sample.program for sample in self.samples)

    @property
    def solved(self) -> dict[str, bool]:
        """Return whether the first sample of each task is solved. Raises ValueError for INFRA:
        unjudged tasks have no score.
        """
        if broken := [s.task_id for s in self.samples if s.verdict == "INFRA"]:
            raise ValueError(
                f"{self.benchmark}: {len(broken)} answers have no verdict, the first for "
                f"{broken[0]}: evaluate again"
            )
        return {task: sample.verdict == "AC" for task, sample in self.first.items()}

    @property
    def first(self) -> dict[str, Sample]:
        """Of each task the sample with the lowest number."""
        found: dict[str, Sample] = {}
        for sample in self.samples:
            if sample.task_id not in found or sample.sample < found[sample.task_id].sample:
                found[sample.task_id] = sample
        return found

    @property
    def pass_at_1(self) -> float:
        solved = self.solved
        return sum(solved.values()) / len(solved)

    @property
    def cut(self) -> float:
        """Share of all answers that ended by their length."""
        return sum(sample.cut for sample in self.samples) / len(self.samples)

    @property
    def content_hash(self) -> str:
        """Return the sha256 over everything except measured times and the place: equal completions
        and verdicts give one hash.
        """
        left_out: Any = {"measured": True, "origin": True, "samples": {"__all__": {"detail"}}}
        return hash_data(self.model_dump(mode="json", exclude=left_out, exclude_defaults=True))

    def solved_by(self, tag: str) -> dict[str, tuple[int, int]]:
        """Return, for each tag that starts with `tag` (such as "operations-"): tasks solved, tasks
        in all.
        """
        solved = self.solved
        groups: dict[str, list[bool]] = {}
        for task, sample in self.first.items():
            for name in (t for t in sample.tags if t.startswith(tag)):
                groups.setdefault(name, []).append(solved[task])
        return {name: (sum(group), len(group)) for name, group in sorted(groups.items())}

    def write(self, path: Path, figures: Mapping[str, Any] | None = None) -> None:
        """Write completely or not at all. figures: results for readers without Ratchet, at the head
        of the file; `read` skips them.
        """
        write_atomic(
            path,
            json.dumps(
                ({"figures": figures} if figures else {}) | self.model_dump(mode="json"), indent=1
            )
            + "\n",
        )

    @classmethod
    def read(cls, path: Path) -> Scorecard:
        """Raises FileNotFoundError, and ValueError where it is no whole scorecard."""
        return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
