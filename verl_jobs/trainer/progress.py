"""Progress of a training, and the watch over it: no wait in a training lasts for ever.

The trainer writes the name of each phase into the file `progress` of the training's folder, and
every process of the training touches the file when it has done something. Two other processes
watch the file: the driver (entry.py), and the owner, which also notices a driver that stands still
(resources/ray/job.py). verl's own loops wait without a limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from verl_jobs.trainer.trainer_lease import STILL_S, Silence, overwrite

FILE = "progress"
UPDATE = "update"
# Once two updates were seen, the limit follows from the longest time without progress so far.
MIN_S, TIMES = 300.0, 20
NO_PROGRESS = "no progress for"  # how the fault begins
OF_RAY = ("resources.ray.head", "ray.scripts", "raylet")  # in the command lines of its daemons


def begin(folder: Path, phase: str) -> None:
    """Record that a phase begins: `update of step 3`."""
    overwrite(folder / FILE, phase)


def phase(folder: Path) -> str:
    """Return the phase that runs; empty before the first."""
    try:
        return (folder / FILE).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def touch(folder: Path) -> None:
    """Record progress within the phase."""
    with suppress(FileNotFoundError):  # an agent loop outside of a training
        os.utime(folder / FILE)


class ProgressWatch:
    """The time without progress, on this process's own clock.

    most_s: `training.stall_s`. still_s: between two looks at most, or this process was paused.
    Before the first phase no time counts: the start of a training has limits of its own.
    """

    def __init__(self, folder: Path, most_s: float, still_s: float = STILL_S) -> None:
        self.path, self.most_s = folder / FILE, most_s
        self.quiet, self.phase = 0.0, ""
        self._seen, self._silence = self._read(), Silence(still_s)
        self._longest, self._updates = 0.0, set[str]()

    def look(self) -> float:
        """Return the seconds without progress until now."""
        before, self._seen = self._seen, self._read()
        moved = self._seen != before or self._seen is None
        if moved:
            self._longest = max(self._longest, self.quiet)
        self.quiet = self._silence.seconds(heard=moved)
        self.phase = self._seen[0] if self._seen else ""
        if self.phase.startswith(UPDATE):
            self._updates.add(self.phase)
        return self.quiet

    @property
    def limit(self) -> float:
        """Seconds without progress after which the training is stuck."""
        if len(self._updates) < 2:
            return self.most_s
        return min(self.most_s, max(MIN_S, TIMES * self._longest))

    def _read(self) -> tuple[str, int] | None:
        try:
            return self.path.read_text(encoding="utf-8").strip(), self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return None


def fault(seconds: float, phase: str, root: psutil.Process | None) -> str:
    """Return what is stuck. root: the process above those of the training on this machine."""
    stopped = ", ".join(_stopped(root)) if root else ""
    return (
        f"{NO_PROGRESS} {seconds:.0f} s in the phase '{phase}'"
        f"{'; stopped processes: ' if stopped else ''}{stopped}"
    )


def ray_above() -> psutil.Process:
    """Return the outermost process of Ray above this one; this one if there is none."""
    above = [
        parent
        for parent in psutil.Process().parents()
        if any(word in " ".join(_command(parent)) for word in OF_RAY)
    ]
    return above[-1] if above else psutil.Process()


def _stopped(root: psutil.Process) -> Iterator[str]:
    """Yield the name of each process from `root` downwards that is stopped (SIGSTOP)."""
    with suppress(psutil.NoSuchProcess):
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                if process.status() == psutil.STATUS_STOPPED:
                    yield f"{name_of(process)} (process {process.pid})"


def name_of(process: psutil.Process) -> str:
    """Return `ray::HFServer`, `verl_jobs.trainer.entry`, `raylet`: the telling word."""
    line = _command(process)
    if "-m" in line[:-1]:
        return line[line.index("-m") + 1]
    scripts = [word for word in line if word.endswith(".py")]
    return Path((scripts or line or [process.name()])[0].split()[0]).name


def _command(process: psutil.Process) -> list[str]:
    try:
        return [word for word in process.cmdline() if word]
    except psutil.Error:
        return []
