"""What runs cost: hours of machines, GPUs, cores and memory, and storage, by the profile's prices.

In: run records with their progress, trainings and artifacts. Out: a `RunCost` for each run, sums of
a month, and whether its budget is spent. All is counted again from these files, which a kill leaves
whole. Those of a run on another host are not here: its record has the stages that ended, and its
GPUs are those of the profile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from artifacts.integrity import CorruptArtifact
from artifacts.manifest import hardware
from resources.config.profile import Profile
from resources.home import NotReady
from resources.progress import ON_RAY, Line, read, work
from resources.registry.ledger import Entry
from resources.run_record import PipelineRun, RunRecord, readable
from resources.settings import Settings
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

TRAINING = "checkpoint"  # the stage that uses the GPUs of a training
GENERATING = {"difficulty_rankings", "contestant_scores", "benchmark_scores"}  # with one engine
MONTH_H = 30 * 24


class BudgetSpent(BaseException):
    """Ends a running training after a save, as an interruption by a person does."""


@dataclass(frozen=True)
class RunUsage:
    """Hours of one run or of several; storage in GiB hours."""

    hours: float = 0.0
    gpu: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    storage: float = 0.0

    def __add__(self, other: RunUsage) -> RunUsage:
        return RunUsage(
            self.hours + other.hours,
            self.gpu + other.gpu,
            self.cpu + other.cpu,
            self.memory + other.memory,
            self.storage + other.storage,
        )

    def price(self, profile: Profile) -> float:
        """Return the price in the profile's currency; 0 without prices."""
        table = profile.cost
        return (
            self.hours * profile.price_per_hour
            + self.gpu * table.gpu_hour
            + self.cpu * table.cpu_hour
            + self.memory * table.gib_hour
            + self.storage / MONTH_H * table.gib_month
        )


@dataclass(frozen=True)
class RunCost:
    """What a run cost, and what it gained.

    solved: held-out problems that the run's challenger solves, None before its decision.
    points: pass@1 points that its promotion gained, 0 without one.
    """

    run: str
    usage: RunUsage
    price: float
    solved: int | None = None
    points: float = 0.0


@dataclass(frozen=True)
class Total:
    """Runs together. per_solved, per_point: price of a solved problem and of a promoted point; None
    where there is none.
    """

    usage: RunUsage
    price: float
    per_solved: float | None
    per_point: float | None

    @classmethod
    def of(cls, runs: Iterable[RunCost]) -> Total:
        runs = list(runs)
        price = sum(run.price for run in runs)
        solved = sum(run.solved or 0 for run in runs)
        points = sum(run.points for run in runs)
        return cls(
            sum((run.usage for run in runs), RunUsage()),
            price,
            price / solved if solved else None,
            price / points if points > 0 else None,
        )


def month_of(now: datetime) -> tuple[float, float]:
    """Return the bounds of a calendar month in UTC, in seconds since 1970."""
    begin = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    end = begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
    return begin.timestamp(), end.timestamp()


def costs(
    settings: Settings, now: datetime, within: tuple[float, float] | None = None
) -> list[RunCost]:
    """Return the cost of each run that worked or stored within these bounds, oldest first.

    within: in seconds since 1970; None: at any time. Raises LedgerChanged and LedgerUnreachable.
    """
    decisions = {entry.run_id: entry for entry in settings.history}
    known = readable(settings.home.runs)
    each = (
        _run_cost(settings, record, decisions.get(record.id), now, within)
        for record in known
        if within is None or _worked_since(PipelineRun(settings.home.runs, record.id), within[0])
    )
    return [cost for cost in each if cost.usage.hours or within is None]


def run_cost(settings: Settings, record: RunRecord) -> RunCost:
    """Return what one run has cost until now."""
    decision = next((each for each in settings.history if each.run_id == record.id), None)
    return _run_cost(settings, record, decision, datetime.now(UTC), None)


def cost_line(cost: RunCost) -> str:
    """Return the cost of a run in one line."""
    usage, total = cost.usage, Total.of([cost])
    hours = (
        f"{usage.hours:.2f} hours of machines, {usage.gpu:.2f} of GPUs, {usage.cpu:.2f} of cores, "
        f"{usage.memory:.2f} of a GiB of memory"
    )
    if not cost.price:
        return f"No price: price_per_hour and cost of the profile are not set; {hours}."
    per = ((total.per_solved, "a solved problem"), (total.per_point, "a promoted point"))
    shares = "".join(f", {price:.4g} for {what}" for price, what in per if price is not None)
    return f"{cost.price:.2f}{shares}: {hours}."


def _run_cost(
    settings: Settings,
    record: RunRecord,
    decision: Entry | None,
    now: datetime,
    within: tuple[float, float] | None,
) -> RunCost:
    bounds = within or (0.0, now.timestamp())
    usage = _usage(settings, record, now, bounds)
    return RunCost(record.id, usage, usage.price(settings.profile), *_outcome(decision))


def _worked_since(run: PipelineRun, begin: float) -> bool:
    """Whether a run may have worked since then; one of another host may."""
    file = run.progress_file
    return not file.exists() or file.stat().st_mtime >= begin


def _usage(
    settings: Settings, record: RunRecord, now: datetime, within: tuple[float, float]
) -> RunUsage:
    """Return the hours of one run within these bounds."""
    run, store = PipelineRun(settings.home.runs, record.id), settings.store
    begin, end = within[0], min(within[1], now.timestamp())
    hours, gpu_hours = 0.0, 0.0
    training = _training(run.folder, settings.profile.training)
    on_gpus = training.engine != "hf"
    for line, stop in _work(run, record):
        inside = max(0.0, min(stop, end) - max(line.t, begin)) / 3600
        hours += inside
        if on_gpus and line.stage == TRAINING:
            gpu_hours += inside * (training.ranks + training.scale.engine_gpus)
        elif on_gpus and line.text == ON_RAY:
            gpu_hours += inside * training.scale.tensor_parallel
    try:
        checkpoint = store.current_manifest("checkpoints", record.id)
    except (CorruptArtifact, FileNotFoundError):  # `ratchet registry verify` names it
        checkpoint = None
    machine = (checkpoint.hardware if checkpoint else None) or hardware()
    gib = record.peak_pss_gib or float(machine["memory_gib"])
    stored = _bytes(run.folder) + (store.size(checkpoint) if checkpoint else 0)
    opened = datetime.fromisoformat(record.opened_at).timestamp()
    return RunUsage(
        hours,
        gpu_hours,
        hours * float(machine["cores"]),
        hours * gib,
        stored / 2**30 * max(0.0, end - max(begin, opened)) / 3600,
    )


def _work(run: PipelineRun, record: RunRecord) -> Iterator[tuple[Line, float]]:
    """Yield each line of a run's progress with the time until which it worked on it."""
    if run.progress_file.exists():
        yield from work(read(run.progress_file)[0])
        return
    for stage, timing in record.stages.items():
        ended = datetime.fromisoformat(timing.finished_at).timestamp()
        text = ON_RAY if stage in GENERATING else ""
        yield Line(t=ended - timing.seconds, stage=stage, event="at", text=text), ended


def check_budget(settings: Settings, now: datetime) -> None:
    """Raise NotReady if the budget of this month is spent."""
    budget = settings.profile.cost.budget
    if budget and (spent := spent_in(settings, now)) >= budget:
        raise NotReady(
            f"the budget of {now.astimezone(UTC):%Y-%m} is spent, {spent:.2f} of {budget:g} "
            "(cost.budget of the profile): raise it, or wait for the next month"
        )


def end_if_spent(settings: Settings, now: datetime) -> None:
    """Raise BudgetSpent in a running training if the budget of this month is spent."""
    try:
        check_budget(settings, now)
    except NotReady as refusal:
        raise BudgetSpent(str(refusal)) from None


def spent_in(settings: Settings, now: datetime) -> float:
    """Return what the runs of this month have cost until now."""
    return Total.of(costs(settings, now, month_of(now))).price


def _outcome(entry: Entry | None) -> tuple[int | None, float]:
    """Return the solved problems of a decision, and the gained points if it promoted."""
    comparison = entry.decision.get("comparison") if entry else None
    if entry is None or not comparison:
        return None, 0.0
    gained = 100 * comparison["difference"] if entry.kind == "promote" else 0.0
    return comparison["after"]["solved"], gained


def _training(folder: Path, otherwise: Training) -> Training:
    """Return the settings of a run's training. otherwise: of a run without a job here."""
    for file in sorted((folder / "training").glob("*/job.json")):
        with contextlib.suppress(CorruptArtifact):
            return TrainingJob.read(file).training
    return otherwise


def _bytes(folder: Path) -> int:
    """Return the disk space of a folder; files with several links count once."""
    sizes: dict[tuple[int, int], int] = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a training removes old saves meanwhile
            stat = path.lstat()
            sizes[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
    return sum(sizes.values())
