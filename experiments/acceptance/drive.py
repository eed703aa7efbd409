"""Run the pipeline in a home of its own, kill its trainer once, and sample the machine's load.

Everything is on disk, so that a later call continues:

    home/        RATCHET_HOME of the run
    kill.json    the kill of the trainer: its step, its newest save, when
    machine.json the doctor's findings before the run (acceptance.py)
    events.json  when each event was first seen, in seconds that the command ran
    load.jsonl   samples of the machine's load while the training ran
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
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
KILL, EVENTS, LOAD = "kill.json", "events.json", "load.jsonl"
UPDATED = "actor/grad_norm"  # in the metrics of every step, not in those of a validation


def settings_of(device: str, folder: Path, base: str = "") -> Settings:
    """Return the settings of the run: the profile of the device, in the folder's home.

    base: a checkpoint that learns from shipped problems, instead of a tiny model that learns the
    embedded family. On a GPU the engine is vLLM if it can be imported, else transformers.
    """
    profile = Path(__file__).with_name(f"{'base-' if base else ''}{device}.yaml")
    changes: tuple[str, ...] = (f"base={base}",) if base else ()
    if device == "cuda" and import_fault("vllm"):
        changes += ("training.engine=transformers",)
    return Settings(Home(folder / "home"), str(profile), changes, chosen=True)


def state(settings: Settings) -> str:
    """Return the state of the pipeline run: open, done or failed."""
    record = PipelineRun(settings.home.runs, RUN).stored
    return record.state if record else "open"


def run_pipeline(settings: Settings, watcher: Watcher, console: Console) -> int:
    """Start or resume the pipeline run until it has a decision. Return the last exit code."""
    code = 0
    for _ in range(STARTS):
        if state(settings) != "open":
            break
        code = demo(settings, console)
        if code in (BUSY, INTERRUPTED):
            break
    watcher.look()
    return code


def training_folder(home: Home) -> Path | None:
    """Return the folder of the run's training; None before it exists."""
    return next((path.parent for path in home.runs.folder.glob(f"{RUN}/training/*/job.json")), None)


def steps(folder: Path) -> list[int]:
    """Return the steps of a training that have an update, ascending."""
    return [row["step"] for row in metrics(folder) if UPDATED in row]


class Events:
    """When each event was first seen, in seconds of the calls of this command together."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / EVENTS
        kept: dict[str, Any] = {"seen": {}, "ran": 0.0}
        if self.path.exists():
            kept = json.loads(self.path.read_text(encoding="utf-8"))
        self.seen: dict[str, float] = kept["seen"]
        self.before: float = kept["ran"]
        self.called_at = time.monotonic()

    def note(self, event: str) -> bool:
        """Record an event. Return whether it is new."""
        new = event not in self.seen
        if new:
            self.seen[event] = round(self._ran(), 1)
            self.keep()
        return new

    def keep(self) -> None:
        """Write how long the command has run: a kill loses the seconds since the last call."""
        write_atomic(self.path, json.dumps({"seen": self.seen, "ran": round(self._ran(), 1)}))

    def _ran(self) -> float:
        return self.before + time.monotonic() - self.called_at


class Watcher(threading.Thread):
    """Notes events, samples the load while the training runs, and kills its trainer once.

    The kill comes one step after a save, so that at least one step must be repeated. on_event is
    called with the name of each new event, in this thread.
    """

    def __init__(
        self, folder: Path, home: Home, events: Events, on_event: Callable[[str], None]
    ) -> None:
        super().__init__(daemon=True, name="acceptance")
        self.folder, self.home, self.events, self.on_event = folder, home, events, on_event
        self.ended = threading.Event()
        self.sampled_at, self.kept_at, self.before = 0.0, 0.0, reading()

    def __enter__(self) -> Watcher:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.join()

    def run(self) -> None:
        while not self.ended.wait(LOOK_S):
            self.look()
            if time.monotonic() - self.kept_at > SAMPLE_S:
                self.events.keep()
                self.kept_at = time.monotonic()
        self.events.keep()

    def look(self) -> None:
        """Note what has happened since the last look, and act on it."""
        if (record := PipelineRun(self.home.runs, RUN).stored) is None:
            return
        if "sft_checkpoint" in record.stages:
            self._note("supervised")
        if training := training_folder(self.home):
            self._look_at_training(training)
        if record.state != "open":
            self._note("decided")

    def _look_at_training(self, training: Path) -> None:
        reached = steps(training)
        if reached:
            self._note("first_step")
        if (training / "done.json").exists():
            self._note("trained")
            return
        if (trainer := lock_holder(training)) is None:
            return
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
        self._note("killed")

    def _note(self, event: str) -> None:
        if self.events.note(event):
            self.on_event(event)

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
