"""Run the pipeline in a home of its own, kill its trainer once, and sample the machine's load.

Everything is on disk, so that a later call continues:

    home/        RATCHET_HOME of the run
    kill.json    the kill of the trainer: its step, its newest save, when
    machine.json the doctor's findings before the run (acceptance.py)
    begun.json   when the trainer was first seen, and when its first step was
    load.jsonl   samples of the machine's load while the training ran
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console

from artifacts.atomic import write_atomic
from pipelines.launch import INTERRUPTED, demo
from pipelines.run_worker import BUSY
from resources.home import Home
from resources.run_record import PipelineRun
from resources.settings import Settings
from verl_jobs.job import metrics
from verl_jobs.metrics.machine import load, reading
from verl_jobs.planner.engine import import_fault
from verl_jobs.trainer.checkpoints import complete_saves
from verl_jobs.trainer.trainer_lease import lock_holder

RUN = "chain-0001"  # the home's only pipeline run
STARTS = 3  # of the pipeline run, in one call
LOOK_S, SAMPLE_S = 0.2, 5.0
KILL, BEGUN, LOAD = "kill.json", "begun.json", "load.jsonl"
UPDATED = "actor/grad_norm"  # in the metrics of every step, not in those of a validation


def settings_of(device: str, folder: Path) -> Settings:
    """Return the settings of the run: the profile of the device, in the folder's home.

    On a GPU the engine is vLLM if it can be imported, else transformers.
    """
    profile = Path(__file__).with_name(f"{device}.yaml")
    without_vllm = device == "cuda" and import_fault("vllm")
    changes = ("training.engine=transformers",) if without_vllm else ()
    return Settings(Home(folder / "home"), str(profile), changes, chosen=True)


def state(settings: Settings) -> str:
    """Return the state of the pipeline run: open, done or failed."""
    run = PipelineRun(settings.home.runs / RUN)
    return run.record.state if (run.folder / "run.json").exists() else "open"


def run_pipeline(folder: Path, settings: Settings, console: Console) -> int:
    """Start or resume the pipeline run until it has a decision. Return the last exit code."""
    code = 0
    for _ in range(STARTS):
        if state(settings) != "open":
            break
        with Watcher(folder, settings.home):
            code = demo(settings, console)
        if code in (BUSY, INTERRUPTED):
            break
    return code


def training_folder(home: Home) -> Path | None:
    """Return the folder of the run's training; None before it exists."""
    return next((path.parent for path in home.runs.glob(f"{RUN}/training/*/job.json")), None)


def steps(folder: Path) -> list[int]:
    """Return the steps of a training that have an update, ascending."""
    return [row["step"] for row in metrics(folder) if UPDATED in row]


class Watcher(threading.Thread):
    """Samples the load while the training runs, and kills its trainer once.

    The kill comes one step after a save, so that at least one step must be repeated.
    """

    def __init__(self, folder: Path, home: Home) -> None:
        super().__init__(daemon=True, name="acceptance")
        self.folder, self.home = folder, home
        self.ended = threading.Event()
        self.sampled_at, self.before = 0.0, reading()

    def __enter__(self) -> Watcher:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.ended.set()
        self.join()

    def run(self) -> None:
        while not self.ended.wait(LOOK_S):
            training = training_folder(self.home)
            if training is None or (training / "done.json").exists():
                continue
            trainer = lock_holder(training)
            if trainer is None:
                continue
            self._note("trainer")
            reached = steps(training)
            if reached:
                self._note("first_step")
            self._sample()
            saves = complete_saves(training / "saves")
            if saves and reached and reached[-1] > saves[-1] and not self._has(KILL):
                self._kill(trainer, training, reached[-1], saves[-1])

    def _kill(self, trainer: int, training: Path, step: int, save: int) -> None:
        actor = training / "saves" / f"global_step_{save}" / "actor" / "fsdp_config.json"
        fsdp: dict[str, Any] = json.loads(actor.read_text(encoding="utf-8"))
        os.kill(trainer, signal.SIGKILL)
        kill = {"step": step, "save": save, "at": time.time(), "fsdp": fsdp}
        write_atomic(self.folder / KILL, json.dumps(kill, indent=1))

    def _note(self, event: str) -> None:
        """Record when an event was first seen."""
        path = self.folder / BEGUN
        seen = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if event not in seen:
            write_atomic(path, json.dumps(seen | {event: time.time()}))

    def _sample(self) -> None:
        if time.monotonic() - self.sampled_at < SAMPLE_S:
            return
        self.sampled_at = time.monotonic()
        try:
            now = reading()
        except subprocess.TimeoutExpired:  # nvidia-smi on a busy machine: the next sample counts
            return
        line = json.dumps({"at": time.time(), **load(self.before, now)})
        with (self.folder / LOAD).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.before = now

    def _has(self, name: str) -> bool:
        return (self.folder / name).exists()
