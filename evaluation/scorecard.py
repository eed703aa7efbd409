"""One checkpoint's result on one benchmark, with everything needed to reproduce it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from artifacts.atomic import write_atomic
from artifacts.hashing import hash_data
from artifacts.integrity import changed, reading, seal, unseal
from artifacts.store import Artifact

CARD = "scorecard.json"  # a score's file in the store


class ScoredSample(BaseModel):
    """One completion of one task, with its verdict."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    sample: int = 0
    completion: str
    program: str
    verdict: str
    passed: int = 0
    total: int = 0
    cut: bool = False  # truncated at the token limit
    # the first failed test in words, if the statement shows that test; hidden tests stay hidden
    first_failed: str = ""
    # number of the first failed test, from 1; 0 if unknown (evaluation/judging/failure_kinds.py)
    failed_test: int = 0
    raised: str = ""  # type of the exception that ended it
    tags: tuple[str, ...] = ()
    # name that related tasks share (problems/clusters.py); "": independent
    cluster: str = ""
    # Set of tests -> passed, if the benchmark has several (base, plus); AC passes all.
    sets: dict[str, bool] = {}
    whole: bool = True  # the completion is complete by itself; else it continues the task's prompt
    detail: str = ""  # why it fails, in words
    value: float | None = None  # part marks in [0, 1] of another tool; None: the verdict decides

    def credit(self, tests: str = "") -> float:
        """Return its part marks; else 1 if it passes all tests, or those of one set, or 0."""
        return self.passes(tests) if self.value is None else self.value

    def passes(self, tests: str = "") -> bool:
        """Return whether it passes all tests, or those of one set."""
        return self.sets[tests] if tests else self.verdict == "AC"


class Origin(BaseModel):
    """The arguments of `ratchet evaluate --benchmark`: with them the completions are judged again,
    or generated again if they are missing.
    """

    model_config = ConfigDict(frozen=True)

    benchmark: str  # as given: humaneval+, livecodebench@..., or a YAML file
    data: str  # the benchmark's file
    completions: str = ""  # file of the completions; empty if a model generated them
    model: str = ""  # a folder or hub id; with an endpoint, the model's name there
    endpoint: str = ""
    form: str = "auto"
    sanitized: bool = False  # completions were reduced as evalplus.sanitize does
    made_with: dict[str, Any] = {}  # versions of code and packages, hardware


class Scorecard(BaseModel):
    """Verdicts of one model, task by task; scores, comparisons and reports are made from these."""

    model_config = ConfigDict(frozen=True)

    benchmark: str
    benchmark_version: str  # content hash of the tasks
    harness_version: str
    checkpoint: str  # its name, such as "chain-0001-step-30"; for a file of completions, the file's
    checkpoint_hash: str  # empty if the weights are unknown
    # temperature, n, max_new_tokens, stop, seed; empty for a file that does not state them.
    sampling: dict[str, Any]
    samples: tuple[ScoredSample, ...]
    isolation: str
    source: str = ""  # the tasks' source in problems/sources, if not the benchmark's name
    release: str = ""  # release of the benchmark's file
    weights: str = ""  # hash of the tensors that made the completions; empty if unknown
    partial: tuple[str, ...] = ()  # tasks without completions: the score is over the others
    # Tasks that this machine cannot judge, or a log has no score of, with the reason; they have no
    # samples.
    unmeasured: dict[str, str] = {}
    prompts: dict[str, str] = {}  # prompt of each task
    origin: Origin | None = None  # None: a checkpoint of the home, whose passport has its origin
    measured: dict[str, float] = {}  # seconds, tokens; not part of the hash
    tool: str = ""  # whose log it was read from; empty: `ratchet evaluate`
    tool_version: str = ""  # of that tool; empty if its log does not state it
    prompt_hashes: dict[str, str] = {}  # hash of each task's prompt, where that log has them
    task_hashes: dict[str, str] = {}  # hash of each task's text, where another tool's log has texts

    @property
    def tests(self) -> tuple[str, ...]:
        """Return the sets of tests, narrowest first; empty if there is only one."""
        return tuple(self.samples[0].sets)

    @property
    def keeps_completions(self) -> bool:
        """Return whether it holds the completions; they can be left out of a file."""
        return any(sample.completion or sample.program for sample in self.samples)

    @property
    def solved(self) -> dict[str, bool]:
        """Return whether the first sample of each task is solved. Raises ValueError for INFRA:
        unjudged tasks have no score.
        """
        if broken := [s.task_id for s in self.samples if s.verdict == "INFRA"]:
            raise ValueError(
                f"{self.benchmark}: {len(broken)} completions have no verdict, the first for "
                f"{broken[0]}: evaluate again"
            )
        return {task: sample.verdict == "AC" for task, sample in self.first.items()}

    @property
    def first(self) -> dict[str, ScoredSample]:
        """Return each task's sample with the lowest number."""
        samples: dict[str, ScoredSample] = {}
        for sample in self.samples:
            if sample.task_id not in samples or sample.sample < samples[sample.task_id].sample:
                samples[sample.task_id] = sample
        return samples

    @property
    def pass_at_1(self) -> float:
        """Return the share of correct samples, averaged over tasks. Raises ValueError for INFRA."""
        solved: dict[str, list[bool]] = {task: [] for task in self.solved}
        for sample in self.samples:
            solved[sample.task_id].append(sample.verdict == "AC")
        return sum(sum(each) / len(each) for each in solved.values()) / len(solved)

    @property
    def prompts_hash(self) -> str:
        """Return the hash of the prompts of all tasks that have samples; "" if one is unknown."""
        known = self.prompt_hashes or {task: hash_data(text) for task, text in self.prompts.items()}
        tasks = sorted({sample.task_id for sample in self.samples})
        return hash_data([known[task] for task in tasks]) if {*tasks} <= known.keys() else ""

    @property
    def cut(self) -> float:
        """Return the share of completions that were truncated."""
        return sum(sample.cut for sample in self.samples) / len(self.samples)

    @property
    def content_hash(self) -> str:
        """Return the sha256 over everything except measured times and the place: equal completions
        and verdicts give one hash.
        """
        left_out: Any = {"measured": True, "origin": True, "samples": {"__all__": {"detail"}}}
        return hash_data(self.model_dump(mode="json", exclude=left_out, exclude_defaults=True))

    def without(self, tasks: Collection[str]) -> Scorecard:
        """Return the card of the other tasks."""
        kept = tuple(sample for sample in self.samples if sample.task_id not in tasks)
        return self.model_copy(update={"samples": kept})

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
        of the file; `read` skips them. The first line is the sha256 of the others.
        """
        data = ({"figures": figures} if figures else {}) | self.model_dump(mode="json")
        write_atomic(path, seal(json.dumps(data, indent=1)))

    @classmethod
    def read(cls, path: Path) -> Scorecard:
        """Read a file. Raises FileNotFoundError, ValueError for an incomplete scorecard, and
        CorruptArtifact for one that was changed after it was written.
        """
        return cls.model_validate(unseal(path.read_text(encoding="utf-8"), path))

    @classmethod
    def stored(cls, artifact: Artifact) -> Scorecard:
        """Return the card of a score in the store. Raises CorruptArtifact for changed verdicts."""
        path = artifact.path / CARD
        with reading(path):
            card = cls.read(path)
        if card.content_hash != artifact.content_hash:
            raise changed(path, "has other verdicts than its manifest names; it was changed")
        return card
