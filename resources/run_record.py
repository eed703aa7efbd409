"""The record of a pipeline run: one pass from raw problems to a decision.

It holds the settings and the state of a run, in a row of a database that several homes may share:
numbers, ids and draws are taken once among all of them. A kill at any moment leaves the old row or
the new one. The run's own files are in `runs/<id>/` of the home that runs it.
A checkpoint added by hand has a record of the same kind. A record that is scored on held-out tasks
owns a range of them: its draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from artifacts.home_paths import present_path, stored_path
from artifacts.integrity import RESTORE, CorruptArtifact, reading, seal, unseal
from resources.model_version import ModelVersion, now
from resources.progress import Progress, attempts_s, read
from resources.registry.ledger_database import PostgresServer, Schema, SqliteFile, database
from resources.stage_report import StageReport

TABLE = "CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, record TEXT NOT NULL);"
SCHEMA = Schema("the record of runs", "runs", "runs", TABLE, TABLE, lock=0x7261_7463_0003)
Kind = Literal["pipeline", "evaluation", "rescore", "validation", "score", "data", "study"]
FAILURES = 2  # after this many failures a pipeline run is abandoned and the next one is opened


class Timing(BaseModel):
    """Seconds of all attempts of a stage. `reused`: the artifact already existed."""

    model_config = ConfigDict(frozen=True)

    seconds: float
    reused: bool
    finished_at: str


class HeldoutDraw(BaseModel):
    """Held-out tasks that one record uses, and no other: `count` from `first` on, in
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


@dataclass(frozen=True)
class RunRecords:
    """Where runs are: the folder with their files, and the database with their records.

    place: a SQLite file, or a `postgresql://` URL.
    """

    folder: Path
    place: Path | str

    def __truediv__(self, id: str) -> Path:
        return self.folder / id

    @property
    def home(self) -> Path:
        return self.folder.parent

    @cached_property
    def database(self) -> SqliteFile | PostgresServer:
        return database(self.place, SCHEMA)

    def texts(self, id: str = "", cursor: Any = None) -> dict[str, str]:
        """Return the stored text of each record, by id. id: only of this one. cursor: of a
        transaction.
        """
        if cursor is None:
            with self.database.reading() as reader:
                return self.texts(id, reader) if reader else {}
        mark = self.database.mark
        cursor.execute(f"SELECT id, record FROM runs WHERE {mark} IN ('', id) ORDER BY id", (id,))
        return dict(cursor.fetchall())

    def parsed(self, id: str, text: str) -> RunRecord:
        """Return a record. Raises CorruptArtifact for one that was changed."""
        where = f"{self.place}: {id}"
        with reading(where, RESTORE):
            record = RunRecord.model_validate(unseal(text, where, RESTORE))
        return _moved(record, present_path, self.home)


class PipelineRun:
    """One run: its record, and the folder of its files."""

    def __init__(self, runs: RunRecords, id: str) -> None:
        self.runs, self.id, self.folder = runs, id, runs / id

    @property
    def stored(self) -> RunRecord | None:
        """The record; None if there is none. Raises CorruptArtifact for one that was changed."""
        text = self.runs.texts(self.id).get(self.id)
        return None if text is None else self.runs.parsed(self.id, text)

    @property
    def record(self) -> RunRecord:
        """The record. Raises FileNotFoundError without one."""
        if (record := self.stored) is None:
            raise FileNotFoundError(f"{self.runs.place}: no record of the run {self.id}: {RESTORE}")
        return record

    @property
    def progress_file(self) -> Path:
        return self.folder / "progress.jsonl"

    def change(self, **fields: Any) -> RunRecord:
        with self._writing() as (record, write):
            return write(record.model_copy(update=fields))

    @contextmanager
    def _writing(self) -> Iterator[tuple[RunRecord, Callable[[RunRecord], RunRecord]]]:
        """Yield the record, and a function that replaces it, while nobody else writes one."""
        with locked(self.runs) as cursor:
            text = self.runs.texts(self.id, cursor).get(self.id)
            if text is None:
                raise FileNotFoundError(
                    f"{self.runs.place}: no record of the run {self.id}: {RESTORE}"
                )
            record = self.runs.parsed(self.id, text)
            yield record, lambda changed: _write(cursor, self.runs, changed)

    def keep_code(self, artifact: str, code: str) -> None:
        """Record the code that made an artifact: this run reuses the artifact if it is resumed."""
        with self._writing() as (record, write):
            if record.code.get(artifact) != code:
                write(record.model_copy(update={"code": {**record.code, artifact: code}}))

    def draw(self, seed: int, count: int) -> HeldoutDraw:
        """Return this record's `count` held-out tasks in the order of this seed; the first call
        takes the next unused ones.
        """
        with locked(self.runs) as cursor:
            known = records(self.runs, cursor)
            record = next(record for record in known if record.id == self.id)
            for draw in record.draws:
                if (draw.seed, draw.count) == (seed, count):
                    return draw
            draw = HeldoutDraw(seed=seed, first=tasks_used(known, seed), count=count)
            changed = record.model_copy(update={"draws": (*record.draws, draw)})
            _write(cursor, self.runs, changed)
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
        with self._writing() as (record, write):
            # Once the artifact exists, a pass that only finds it does not count.
            if not report.only_reused or name not in record.stages:
                seconds = round(attempts_s(read(self.progress_file)[0], name), 3)
                timing = Timing(seconds=seconds, reused=report.only_reused, finished_at=now())
                write(record.model_copy(update={"stages": {**record.stages, name: timing}}))

    def code_of(self, artifact: str) -> str:
        """Return the code that made an artifact of this run before it was resumed, else "".

        An edit in between then throws no training away. A later run uses the new code.
        """
        record = self.record
        resumed = record.kind in ("pipeline", "study") and record.state == "open"
        return record.code.get(artifact, "") if resumed else ""

    def fail(self, error: str) -> RunRecord:
        with self._writing() as (record, write):
            if record.state == "done":  # what fails afterwards changes no decision
                return record
            failures = record.failures + 1
            state = "failed" if failures >= FAILURES else "open"
            changed = {"failures": failures, "error": error, "state": state}
            return write(record.model_copy(update=changed))


def open_run(
    runs: RunRecords,
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
    run = PipelineRun(runs, id)
    run.folder.mkdir(parents=True, exist_ok=True)
    with locked(runs) as cursor:
        if id not in runs.texts(id, cursor):
            last = max((record.number for record in records(runs, cursor)), default=0)
            number = 0 if kind == "data" else last + 1
            opened = RunRecord(
                id=id,
                number=number,
                kind=kind,
                seed=base_seed * 1000 + number,
                profile=profile,
                changes=tuple(changes),
                why=why,
                regression=regression,
                champion=champion,
                opened_at=now(),
            )
            _write(cursor, runs, opened)
    return run


def records(runs: RunRecords, cursor: Any = None) -> list[RunRecord]:
    """Return all records, by number. Raises CorruptArtifact for one that was changed.

    cursor: of a transaction.
    """
    every = [runs.parsed(id, text) for id, text in runs.texts(cursor=cursor).items()]
    return sorted(every, key=lambda record: record.number)


def readable(runs: RunRecords) -> list[RunRecord]:
    """Return the records that can be read, by number: to show, not to number a new run by."""
    return sorted(
        (read for read in _read_each(runs).values() if isinstance(read, RunRecord)),
        key=lambda record: record.number,
    )


def unreadable(runs: RunRecords) -> dict[str, CorruptArtifact]:
    """Return the error of each record that cannot be read, by the run's id."""
    return {id: read for id, read in _read_each(runs).items() if isinstance(read, CorruptArtifact)}


def _read_each(runs: RunRecords) -> dict[str, RunRecord | CorruptArtifact]:
    each: dict[str, RunRecord | CorruptArtifact] = {}
    for id, text in runs.texts().items():
        try:
            each[id] = runs.parsed(id, text)
        except CorruptArtifact as error:
            each[id] = error
    return each


def _write(cursor: Any, runs: RunRecords, record: RunRecord) -> RunRecord:
    """Write a record in a transaction, and return it."""
    stored = _moved(record, stored_path, runs.home)
    mark = runs.database.mark
    cursor.execute(
        f"INSERT INTO runs VALUES ({mark}, {mark}) "
        "ON CONFLICT (id) DO UPDATE SET record = EXCLUDED.record",
        (record.id, seal(stored.model_dump_json(indent=1))),
    )
    return record


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


def next_id(runs: RunRecords, prefix: str = "chain") -> str:
    """Return the open pipeline run of this prefix, else the name of the next one.

    A record that cannot be read keeps its name.
    """
    ours = [
        record
        for record in readable(runs)
        if record.kind == "pipeline" and record.id.rpartition("-")[0] == prefix
    ]
    if ours and ours[-1].state == "open":
        return ours[-1].id
    names = [record.id for record in ours]
    names += [id for id in unreadable(runs) if id.rpartition("-")[0] == prefix]
    numbers = [int(tail) for name in names if (tail := name.rpartition("-")[2]).isdigit()]
    return f"{prefix}-{max(numbers, default=0) + 1:04d}"


def newest_id(runs: RunRecords) -> str:
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
def locked(runs: RunRecords) -> Iterator[Any]:
    """Yield a cursor of the transaction in which alone records are opened and changed."""
    with runs.database.writing() as cursor:
        yield cursor
