"""A chain: one pass from raw problems to a decision, and the one record of it.

`runs/<id>/chain.json` says what it is and how far it came; it is replaced whole under a lock: a kill at any moment leaves the old or the new one.
A checkpoint put by hand has a record of the same kind, since it is judged on a held-out draw of its own: draws go by the record's number.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from artifacts.store import write_atomic
from resources.progress import Progress

Kind = Literal["chain", "evaluation", "rescore", "validation", "data", "study"]
FAILURES = 2  # after so many a chain is given up and the next one is opened


class Champion(BaseModel):
    """Who was to be beaten when the chain began."""

    model_config = ConfigDict(frozen=True)

    checkpoint: str
    content_hash: str
    path: str


class Timing(BaseModel):
    """Seconds of the work itself, `found` where the artifact was there already."""

    model_config = ConfigDict(frozen=True)

    seconds: float
    found: bool
    finished_at: str


class Record(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    number: int
    kind: Kind
    seed: int
    profile: str
    changes: tuple[
        str, ...
    ] = ()  # to the profile, by `--set` or `--algorithm`: what goes on with the chain goes on with them
    why: str  # what started it: demo, schedule, a sensor's cause
    regression: bool = False  # started because the champion fell: what resembles the tasks that were lost is drawn more often
    champion: Champion | None
    opened_at: str
    state: Literal["open", "done", "failed"] = "open"
    failures: int = 0
    error: str = ""
    decision: str = ""
    stages: dict[str, Timing] = {}
    peak_pss_gib: float = 0.0
    minutes: float = 0.0  # as a watcher counted them, pauses between attempts left out

    @property
    def took_minutes(self) -> float:
        """Of work: what the watcher counted, or where nobody watched the stages' own times."""
        return self.minutes or sum(timing.seconds for timing in self.stages.values()) / 60


class Chain:
    """The record in its folder. Every change reads, changes and replaces it under the home's lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def record(self) -> Record:
        return Record.model_validate_json((self.folder / "chain.json").read_text(encoding="utf-8"))

    @property
    def progress_file(self) -> Path:
        return self.folder / "progress.jsonl"

    def change(self, **fields: Any) -> Record:
        with _locked(self.folder.parent):
            return self._write(self.record.model_copy(update=fields))

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Times a stage and tells its beginning and end. A stage that raises is told as failed, and raises on."""
        stage = Stage(Progress(self.progress_file, name))
        stage.progress.tell("begin")
        began = time.monotonic()
        try:
            yield stage
        except BaseException as error:
            stage.progress.tell(
                "failed", text=str(error).splitlines()[0] if str(error) else type(error).__name__
            )
            raise
        seconds = time.monotonic() - began
        stage.progress.tell("found" if stage.was_found else "end", text=stage.text)
        with _locked(self.folder.parent):
            record = self.record
            if (
                not stage.was_found or name not in record.stages
            ):  # the first time counts: finding it again says nothing
                timing = Timing(
                    seconds=round(seconds, 3), found=stage.was_found, finished_at=_now()
                )
                self._write(record.model_copy(update={"stages": {**record.stages, name: timing}}))

    def fail(self, error: str) -> Record:
        with _locked(self.folder.parent):
            record = self.record
            failures = record.failures + 1
            state = "failed" if failures >= FAILURES else "open"
            return self._write(
                record.model_copy(update={"failures": failures, "error": error, "state": state})
            )

    def _write(self, record: Record) -> Record:
        write_atomic(self.folder / "chain.json", record.model_dump_json(indent=1))
        return record


class Stage:
    """Handed to the stage's code: `progress` to tell, `made` and `found` count artifacts; a stage that only found some did no work."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.made = self.found = 0
        self.text = ""

    @property
    def was_found(self) -> bool:
        return self.found > 0 and self.made == 0

    def say(self, text: str) -> None:
        """One short line about the outcome, shown beside the tick."""
        self.text = text


def open_chain(
    runs: Path,
    id: str,
    *,
    kind: Kind,
    base_seed: int,
    profile: str,
    why: str,
    champion: Champion | None,
    changes: Sequence[str] = (),
    regression: bool = False,
) -> Chain:
    """The chain of this id: gone on with where it exists, else begun with the next number. Seeds differ from chain to chain, the same each time."""
    with _locked(runs):
        chain = Chain(runs / id)
        if not (chain.folder / "chain.json").exists():
            number = (
                0
                if kind == "data"
                else max((record.number for record in records(runs)), default=0) + 1
            )
            opened = _now()
            chain._write(
                Record(
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
        return chain


def records(runs: Path) -> list[Record]:
    """All records, by number."""
    found = [
        Record.model_validate_json(path.read_text(encoding="utf-8"))
        for path in runs.glob("*/chain.json")
    ]
    return sorted(found, key=lambda record: record.number)


def next_id(runs: Path, prefix: str = "chain") -> str:
    """The open chain of this prefix, else the name of the next one."""
    ours = [
        record
        for record in records(runs)
        if record.kind == "chain" and record.id.rpartition("-")[0] == prefix
    ]
    if ours and ours[-1].state == "open":
        return ours[-1].id
    numbers = [int(tail) for record in ours if (tail := record.id.rpartition("-")[2]).isdigit()]
    return f"{prefix}-{max(numbers, default=0) + 1:04d}"


def newest_id(runs: Path) -> str:
    """The last chain that has its checkpoint, or evaluation, whichever came last; the first chain's name where there is none."""
    ours = [
        record.id
        for record in records(runs)
        if record.kind == "evaluation" or "checkpoint" in record.stages
    ]
    return ours[-1] if ours else "chain-0001"


@contextmanager
def _locked(runs: Path) -> Iterator[None]:
    runs.mkdir(parents=True, exist_ok=True)
    with (runs / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
