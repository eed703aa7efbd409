"""What an acceptance run left on disk: findings, training metrics, planner figures, decision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from assets.stages import CHECKPOINTS
from experiments.acceptance.drive import KILL, LOAD, RUN, UPDATED, Events, training_folder
from resources.capacity import gpus_here, shape_of_start
from resources.config.profile import Profile
from resources.finding import Finding
from resources.home import Home
from resources.run_record import PipelineRun, RunRecord
from resources.settings import Settings
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.metrics.machine import MEASURED
from verl_jobs.planner.planner import LayoutPlan, estimate
from verl_jobs.planner.shapes import GIB, GPUS, Gpu

Row = dict[str, Any]


@dataclass(frozen=True)
class TrainingRecords:
    """The records and metrics of a training that the acceptance checks read.

    attempts: steps with an update, by attempt of the training; rows: metrics of each step with an
    update; load: peak and mean by the names in MEASURED.
    """

    device: str
    findings: Sequence[Finding]
    training: Training
    record: RunRecord | None
    rows: Sequence[Row]
    attempts: Sequence[Sequence[int]]
    finished: bool
    kill: dict[str, Any] | None
    events: dict[str, float]  # seconds
    warm_up: dict[str, Any] | None  # facts of the supervised training
    load: dict[str, tuple[float, float]]
    decision: dict[str, Any] | None
    benchmarks: Sequence[dict[str, Any]]  # of the run's report
    plan: LayoutPlan | None  # for GPUs

    def median(self, metric: str) -> float | None:
        """Return the median over the steps; the first one is left out, because it warms up."""
        values = self.values(metric)
        return median(values[1:] or values) if values else None

    def values(self, metric: str) -> list[float]:
        return [float(row[metric]) for row in self.rows if metric in row]


def collect(
    device: str, folder: Path, settings: Settings, findings: Sequence[Finding]
) -> TrainingRecords:
    """Read the folder. Raises CorruptArtifact for a file that was changed afterwards."""
    home, profile = settings.home, settings.profile
    training = training_folder(home)
    report = _json(home.reports / RUN / "summary.json") or {}
    return TrainingRecords(
        device=device,
        findings=findings,
        training=profile.training,
        record=PipelineRun(home.runs, RUN).stored,
        rows=[row for row in metrics(training) if UPDATED in row] if training else [],
        attempts=_attempts(training) if training else [],
        finished=training is not None and TrainingJob.read(training / "job.json").done is not None,
        kill=_json(folder / KILL),
        events=Events(folder).seen,
        warm_up=_warm_up(home),
        load=_load(folder / LOAD),
        decision=report.get("decision"),
        benchmarks=report.get("benchmarks", ()),
        plan=planned(profile) if device == "cuda" else None,
    )


def planned(profile: Profile) -> LayoutPlan | None:
    """Return the planner's figures for this machine's GPU; None without one."""
    gpus, shape = gpus_here(), shape_of_start(profile)
    return estimate(shape, with_rates(gpus[0]), profile.training) if gpus and shape else None


def with_rates(gpu: Gpu) -> Gpu:
    """Return the GPU with the rates of its type, if the planner knows one of its name."""
    name = gpu.name.replace(" ", "").upper()
    known = [each for each in GPUS.values() if each.name.partition("-")[0] in name]
    return replace(known[0], name=gpu.name, memory=gpu.memory) if known else gpu


def gib(size: float) -> float:
    return size / GIB


def _attempts(training: Path) -> list[list[int]]:
    """Return the steps with an update of each attempt; a line that a kill truncated is skipped."""
    attempts = []
    for path in sorted(training.glob("metrics-*.jsonl")):
        steps = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            steps += [int(row["step"])] if UPDATED in row["data"] else []
        attempts += [steps] if steps else []
    return attempts


def _load(path: Path) -> dict[str, tuple[float, float]]:
    """Return peak and mean of each measure."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    values = {name: [row[name] for row in rows if name in row] for name in MEASURED}
    return {name: (max(each), fmean(each)) for name, each in values.items() if each}


def _warm_up(home: Home) -> dict[str, Any] | None:
    made = home.store().current(CHECKPOINTS, "sft_checkpoint")
    return made.manifest.facts if made else None


def _json(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
