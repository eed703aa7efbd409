"""Start the real pipeline as a user does, kill parts of it, and read the result."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from resources.home import Home
from resources.registry.ledger import Ledger
from verl_jobs.job import metrics

MARK = "RATCHET_RUN"  # in the environment of every process of a pipeline run
OFFLINE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"']
# Within this time a training without a renewed lease saves its state, and a Ray without an owner
# stops.
SETTLE_S = 120.0


@dataclass
class Run:
    """One run of the command, and the process that was killed during it."""

    code: int
    seconds: float
    output: str
    killed: str = ""  # the command line of the killed process
    at_stage: str = ""


def ratchet(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("ratchet")), *arguments]


def demo(
    home: Path,
    *options: str,
    kill: Callable[[subprocess.Popen[bytes]], str] | None = None,
    profile: str = "small",
    timeout: float = 1500,
    bare_machine: bool = False,
) -> Run:
    """Run `ratchet demo` in this home with the given profile (by default the small one).

    kill: called with the command's process; kills a process at some moment and returns its name.
    bare_machine: run without HOME, and without a network except the loopback if the kernel allows
    it.
    """
    environment = os.environ | {"RATCHET_HOME": str(home), "RATCHET_PROFILE": profile}
    environment.pop("DAGSTER_HOME", None)  # an earlier test of this process may have set it
    command = ratchet("demo", *options)
    if bare_machine:
        environment.pop("HOME", None)
        command = [*OFFLINE, *command] if can_unplug() else command
    began = time.monotonic()
    home.mkdir(parents=True, exist_ok=True)
    log = home / "demo.log"
    with log.open("ab") as out:
        start = out.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
        )
        killed, stage = (kill(process), now_at(home)) if kill else ("", "")
        code = process.wait(timeout)
    return Run(
        code,
        time.monotonic() - began,
        log.read_bytes()[start:].decode(errors="replace"),
        killed,
        stage,
    )


def can_unplug() -> bool:
    """Return whether this machine allows a network namespace with only a loopback interface."""
    return subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0


def kill_one(home: Path, command: subprocess.Popen[bytes], after: float, rng: random.Random) -> str:
    """Send SIGKILL to a random process of the run after this many seconds.

    The command line counts as a process of the run. Every kind of process is equally likely. Return
    its kind, or "" if the command ended before.
    """
    if _ended(command, after):
        return ""
    return kill_any([psutil.Process(command.pid), *of_home(home)], rng)


def kill_any(processes: Iterable[psutil.Process], rng: random.Random) -> str:
    """Send SIGKILL to a random one, every kind equally likely. Return its kind."""
    kinds: dict[str, list[psutil.Process]] = {}
    for process in processes:
        try:
            kinds.setdefault(_kind(process), []).append(process)
        except psutil.Error:
            continue
    kind = rng.choice(sorted(kinds))
    rng.choice(kinds[kind]).send_signal(signal.SIGKILL)
    return kind


def _kind(process: psutil.Process) -> str:
    line = command_line(process)
    for part in (
        "ratchet demo",
        "pipelines.run_worker",
        "resources.ray.head",
        "verl_jobs.trainer.entry",
        "zygote",
        "worker_process.py",
        "gcs_server",
        "raylet/raylet",
    ):
        if part in " ".join(line):
            return part
    return str(line[0].split("(")[0][:40] if line else process.name())


def command_line(process: psutil.Process) -> list[str]:
    """Return the command line of a process; empty if the process has ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def of_home(home: Path) -> list[psutil.Process]:
    """Return all live processes of runs in this home, including Ray's daemons."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(
                MARK, ""
            ).startswith(str(home)):
                processes.append(process)
        except psutil.Error:
            continue
    return processes


def orphans(home: Path, within: float = SETTLE_S) -> list[str]:
    """Wait until no process of the home runs; return those that run after `within` seconds."""
    deadline = time.monotonic() + within
    while (processes := of_home(home)) and time.monotonic() < deadline:
        time.sleep(1)
    return [" ".join(command_line(process))[:120] for process in processes if process.is_running()]


def now_at(home: Path) -> str:
    """Return the stage that was started last."""
    events = [
        json.loads(line)
        for path in sorted(home.glob("runs/*/progress.jsonl"))
        for line in path.read_text().splitlines()
        if '"begin"' in line
    ]
    return str(events[-1]["stage"]) if events else "before the first stage"


@dataclass
class Results:
    """The results of a finished pipeline run, without times and costs: hashes by name."""

    datasets: dict[str, list[str]] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    scores: dict[str, str] = field(default_factory=dict)
    ledger: list[tuple[str, str, str]] = field(default_factory=list)


def results_of(home: Path) -> Results:
    datasets: dict[str, list[str]] = {}
    models: dict[str, str] = {}
    scores: dict[str, str] = {}
    for path in sorted(home.glob("*/*/*/manifest.json")):
        manifest = json.loads(path.read_text())
        match manifest["kind"]:
            case "datasets":
                datasets.setdefault(manifest["name"], []).append(manifest["content_hash"])
            case "checkpoints":
                models[manifest["name"]] = manifest["content_hash"]
            case "scores":
                scores[manifest["name"]] = manifest["content_hash"]
    entries = Ledger(Home(home).ledger).history()
    ledger = [(str(entry.kind), entry.checkpoint, entry.checkpoint_hash) for entry in entries]
    return Results(
        {name: sorted(hashes) for name, hashes in datasets.items()}, models, scores, ledger
    )


def stray(home: Path) -> list[str]:
    """Return half-written files and folders that could mislead a reader.

    A dead process's draft is removed when the next process starts the same artifact.
    """
    return [
        str(path.relative_to(home))
        for pattern in ("*/*/.draft-*", "runs/*/training/*/candidates/.step-*")
        for path in home.glob(pattern)
    ]


def steps(folder: Path) -> int:
    """Return the last step of a training that has metrics; 0 before the first."""
    return max((row["step"] for row in metrics(folder)), default=0)


def training_of(home: Path) -> Path | None:
    """Return the folder of the home's only training; None before it exists."""
    return next((path.parent for path in home.glob("runs/*/training/*/job.json")), None)


def wait_until(condition: Callable[[], Any], timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _ended(process: subprocess.Popen[bytes], within: float) -> bool:
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True
