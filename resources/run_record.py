"""The record of a pipeline run: one pass from raw problems to a decision.

`runs/<id>/run.json` holds its settings and its state. The file is replaced as a whole under a
lock, so that a kill at any moment leaves the old or the new one.
A checkpoint added by hand has a record of the same kind. A record that is scored on held-out tasks
owns a range of them: its draw.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from artifacts.atomic import write_atomic
from artifacts.home_paths import present_path, stored_path
from artifacts.integrity import CorruptArtifact, reading, seal, unseal
from artifacts.store import Artifact
from resources.progress import Progress, attempts_s, read

Kind = Literal["pipeline", "evaluation", "rescore", "validation", "score", "data", "study"]
FAILURES = 2  # after this many failures a pipeline run is abandoned and the next one is opened


class ModelVersion(BaseModel):
    """A version of the model: its checkpoint's name, the hash of its weights, and its folder."""

    model_config = ConfigDict(frozen=True)

    checkpoint: str
    content_hash: str
    path: str  # in the file relative to the home

    @classmethod
    def of_artifact(cls, checkpoint: str, weights: Artifact) -> ModelVersion:
        return cls(checkpoint=checkpoint, content_hash=weights.content_hash, path=str(weights.path))


class Timing(BaseModel):
    """Seconds of all attempts of a stage. `reused`: the artifact already existed."""

    model_config = ConfigDict(frozen=True)

    seconds: float
    reused: bool
    finished_at: str


class HeldoutDraw(BaseModel):
    """Held-out tasks that one record uses, and no other of the home: `count` from `first` on, in
    the order of this seed of the family.
    """

    model_config = ConfigDict(frozen=True)

    seed: int
    first: int
    count: int

    @property
    def end(self) -> int:
        return self.first + self.count


class RunRecord(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    number: int
    kind: Kind
    seed: int
    profile: str
    changes: tuple[str, ...] = ()  # to the profile, by `--set` or `--algorithm`; kept on resume
    why: str  # its cause: demo, schedule, a sensor's reason
    regression: bool = False  # the champion fell: problems like the lost tasks are drawn more often
    champion: ModelVersion | None
    draws: tuple[HeldoutDraw, ...] = ()  # more than one if seed or size changed on the way
    opened_at: str
    state: Literal["open", "done", "failed"] = "open"
    failures: int = 0
    error: str = ""
    decision: str = ""
    stages: dict[str, Timing] = {}
    code: dict[str, str] = {}  # artifact -> hash of the code that made it in this run
    peak_pss_gib: float = 0.0
    minutes: float = 0.0  # as a watcher counted them, without the pauses between attempts

    @property
    def took_minutes(self) -> float:
        """Minutes of work: those that the watcher counted, else the sum of the stages' times."""
        return self.minutes or sum(timing.seconds for timing in self.stages.values()) / 60


class PipelineRun:
    """The record in its folder. Every change is made under the home's lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def record(self) -> RunRecord:
        return _read(self.folder / "run.json")

    @property
    def progress_file(self) -> Path:
        return self.folder / "progress.jsonl"

    def change(self, **fields: Any) -> RunRecord:
        with locked(self.folder.parent):
            return self._write(self.record.model_copy(update=fields))

    def keep_code(self, artifact: str, code: str) -> None:
        """Record the code that made an artifact: this run reuses the artifact if it is resumed."""
        with locked(self.folder.parent):
            record = self.record
            if record.code.get(artifact) != code:
                changed = {"code": {**record.code, artifact: code}}
                self._write(record.model_copy(update=changed))

    def draw(self, seed: int, count: int) -> HeldoutDraw:
        """Return this record's `count` held-out tasks in the order of this seed; the first call
        takes the next unused ones.
        """
        with locked(self.folder.parent):
            record = self.record
            for draw in record.draws:
                if (draw.seed, draw.count) == (seed, count):
                    return draw
            first = tasks_used(records(self.folder.parent), seed)
            draw = HeldoutDraw(seed=seed, first=first, count=count)
            self._write(record.model_copy(update={"draws": (*record.draws, draw)}))
            return draw

    @contextmanager
    def stage(self, name: str) -> Iterator[StageReport]:
        """Report a stage's beginning and end, and record the seconds of all its attempts.

        A stage that raises is reported as failed, and the exception propagates.
        """
        report = StageReport(Progress(self.progress_file, name))
        report.progress.write("begin")
        try:
            yield report
        except BaseException as error:
            report.progress.write(
                "failed", text=str(error).splitlines()[0] if str(error) else type(error).__name__
            )
            raise
        report.progress.write("found" if report.only_reused else "end", text=report.text)
        with locked(self.folder.parent):
            record = self.record
            # Once the artifact exists, a pass that only finds it does not count.
            if not report.only_reused or name not in record.stages:
                seconds = round(attempts_s(read(self.progress_file)[0], name), 3)
                timing = Timing(seconds=seconds, reused=report.only_reused, finished_at=now())
                self._write(record.model_copy(update={"stages": {**record.stages, name: timing}}))

    def code_of(self, artifact: str) -> str:
        """Return the code that made an artifact of this run before it was resumed, else "".

        An edit in between then throws no training away. A later run uses the new code.
        """
        record = self.record
        resumed = record.kind in ("pipeline", "study") and record.state == "open"
        return record.code.get(artifact, "") if resumed else ""

    def fail(self, error: str) -> RunRecord:
        with locked(self.folder.parent):
            record = self.record
            if record.state == "done":  # what fails afterwards changes no decision
                return record
            failures = record.failures + 1
            state = "failed" if failures >= FAILURES else "open"
            return self._write(
                record.model_copy(update={"failures": failures, "error": error, "state": state})
            )

    def _write(self, record: RunRecord) -> RunRecord:
        stored = _moved(record, stored_path, self.folder.parents[1])
        write_atomic(self.folder / "run.json", seal(stored.model_dump_json(indent=1)))
        return record


class StageReport:
    """Passed to the stage's code.

    `created` and `reused` count artifacts. A stage that only reused some did no work.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.created = self.reused = 0
        self.text = ""

    @property
    def only_reused(self) -> bool:
        return self.reused > 0 and self.created == 0

    def say(self, text: str) -> None:
        """Set one short line about the outcome, shown next to the stage."""
        self.text = text


def open_run(
    runs: Path,
    id: str,
    *,
    kind: Kind,
    base_seed: int,
    profile: str,
    why: str,
    champion: ModelVersion | None,
    changes: Sequence[str] = (),
    regression: bool = False,
) -> PipelineRun:
    """Open the record of this id, or create it with the next number.

    Seeds differ between pipeline runs, but are reproducible.
    """
    with locked(runs):
        run = PipelineRun(runs / id)
        if not (run.folder / "run.json").exists():
            number = (
                0
                if kind == "data"
                else max((record.number for record in records(runs)), default=0) + 1
            )
            opened = now()
            run._write(
                RunRecord(
                    id=id,
                    number=number,
                    kind=kind,
                    seed=base_seed * 1000 + number,
                    profile=profile,
                    changes=tuple(changes),
                    why=why,
                    regression=regression,
                    champion=champion,
                    opened_at=opened,
                )
            )
        return run


def records(runs: Path) -> list[RunRecord]:
    """Return all records, by number. Raises CorruptArtifact for one that was changed."""
    return sorted(map(_read, runs.glob("*/run.json")), key=lambda record: record.number)


def readable(runs: Path) -> list[RunRecord]:
    """Return the records that can be read, by number: to show, not to number a new run by."""
    return sorted(
        (read for read in _read_each(runs).values() if isinstance(read, RunRecord)),
        key=lambda record: record.number,
    )


def unreadable(runs: Path) -> dict[str, CorruptArtifact]:
    """Return the error of each record that cannot be read, by the run's id."""
    return {id: read for id, read in _read_each(runs).items() if isinstance(read, CorruptArtifact)}


def _read_each(runs: Path) -> dict[str, RunRecord | CorruptArtifact]:
    each: dict[str, RunRecord | CorruptArtifact] = {}
    for path in sorted(runs.glob("*/run.json")):
        try:
            each[path.parent.name] = _read(path)
        except CorruptArtifact as error:
            each[path.parent.name] = error
    return each


def _read(path: Path) -> RunRecord:
    fix = "restore it from a backup, or delete its folder"
    with reading(path, fix):
        record = RunRecord.model_validate(unseal(path.read_text(encoding="utf-8"), path, fix))
    return _moved(record, present_path, path.parents[2])


def _moved(record: RunRecord, path_of: Callable[[str, Path], str], home: Path) -> RunRecord:
    """Return the record with another form of its champion's path."""
    if (champion := record.champion) is None:
        return record
    path = path_of(champion.path, home)
    return record.model_copy(update={"champion": champion.model_copy(update={"path": path})})


def tasks_used(records: Sequence[RunRecord], seed: int) -> int:
    """Return how many held-out tasks the records have used in the order of this seed."""
    draws = [draw for record in records for draw in record.draws if draw.seed == seed]
    return max((draw.end for draw in draws), default=0)


def next_id(runs: Path, prefix: str = "chain") -> str:
    """Return the open pipeline run of this prefix, else the name of the next one.

    A folder whose record cannot be read keeps its name.
    """
    ours = [
        record
        for record in readable(runs)
        if record.kind == "pipeline" and record.id.rpartition("-")[0] == prefix
    ]
    if ours and ours[-1].state == "open":
        return ours[-1].id
    names = [record.id for record in ours]
    names += [path.parent.name for path in runs.glob(f"{prefix}-*/run.json")]
    numbers = [int(tail) for name in names if (tail := name.rpartition("-")[2]).isdigit()]
    return f"{prefix}-{max(numbers, default=0) + 1:04d}"


def newest_id(runs: Path) -> str:
    """Return the last record that has its checkpoint, or is an evaluation.

    Without any, returns the name of the first pipeline run.
    """
    ours = [
        record.id
        for record in readable(runs)
        if record.kind == "evaluation" or "checkpoint" in record.stages
    ]
    return ours[-1] if ours else "chain-0001"


@contextmanager
def locked(runs: Path) -> Iterator[None]:
    """Hold the lock under which records are opened and changed."""
    runs.mkdir(parents=True, exist_ok=True)
    with (runs / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def now() -> str:
    """Return the time in UTC, to the second, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
