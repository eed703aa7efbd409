"""`ratchet demo`: start one pipeline run and show it live. Other commands use this to run a job.

The run is a process of its own (pipelines/run_worker.py) that ends with this one. The view reads
files, so that it never disturbs the run.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.live import Live

from pipelines import instance as dagster_home
from pipelines.process import MARK, of_run, pss_bytes
from pipelines.run_worker import BUSY
from pipelines.watch.view import View
from resources import lease
from resources.capacity import check_machines, memory_gib, unasked
from resources.config.profile import Profile
from resources.home import Home, NotReady
from resources.plugin_check import check_plugins
from resources.preflight import check_policy, check_start_of
from resources.ray.head import live_holders
from resources.ray.private import answers
from resources.run_record import PipelineRun, next_id, records
from resources.settings import Settings
from rewards.own import OwnReward, reward_of
from sandbox.sandbox import Sandbox

RESTARTS = 2  # of a worker that a signal ended
SAMPLE_S = 4.0  # between two samples of memory
INTERRUPTED = 130
NO_ROOM = 2**20  # bytes of disk with which nothing goes on


def demo(settings: Settings, console: Console) -> int:
    """Resume the open run of this home, else start the next one, until its decision. Exit code: 0
    decided, 3 another process trains here, else 1.
    """
    settings = as_begun(settings)
    ready(settings)
    home = settings.home
    if holder := lease.holder(home.lease):
        console.print(str(lease.LeaseHeld(holder, home.lease)), style="yellow", soft_wrap=True)
        return BUSY
    chain_id = next_id(home.runs)
    folder = home.runs / chain_id
    known = folder / "chain.json"
    resumed = ", resumed" if known.exists() else ""
    title = f"{chain_id}{resumed} · profile {settings.title}"
    view = View(folder, title)
    code = watched(
        lambda: start_worker(settings, "full_chain", chain_id, "ratchet demo"),
        view,
        PipelineRun(folder),
        console,
    )
    if code:
        if code != INTERRUPTED:
            explain_failure(folder, code, console)
        return code
    from pipelines.watch.summary import show

    show(home.reports / chain_id, PipelineRun(folder).record, console)
    return 0


def as_begun(settings: Settings) -> Settings:
    """Return the profile and changes that the open run began with, unless others are given now."""
    runs = settings.home.runs
    begun = next(
        (
            record
            for record in (records(runs) if runs.is_dir() else [])
            if record.id == next_id(runs)
        ),
        None,
    )
    if begun is None:
        return settings
    return replace(
        settings,
        profile_name=settings.profile_name if settings.chosen else begun.profile,
        changes=settings.changes or begun.changes,
    )


def ready(settings: Settings, *, trains: bool = True, base: Path | None = None) -> Profile:
    """Check home and profile, and set DAGSTER_HOME; return the profile. Raises NotReady,
    ProfileError, UnfitStart or UnverifiedReward before anything starts.

    base: the folder that training starts from, if it is not the profile's.
    """
    home, profile = settings.home, settings.profile
    profile = profile.model_copy(update={"base": str(base)}) if base else profile
    home.make()
    if trains:
        _check_own_reward(home, profile)
        check_plugins(profile.training, unverified=profile.reward.unverified)
        if base:
            check_start_of(profile, base, warm_up=False)
        else:
            check_policy(home, profile)
        if profile.ray.address and not answers(profile.ray.address):
            raise NotReady(
                f"no Ray answers at {profile.ray.address} (ray.address of the profile): start "
                "it, or leave the address out"
            )
        goes_on = live_holders(
            home.path / "ray"
        )  # a training left by a killed command has its memory already, and is attached to
        home.check_room(
            disk_gib=profile.needs.disk_gib, memory_gib=0.0 if goes_on else memory_gib(profile)
        )
        check_machines(profile)
        if line := unasked(profile):
            print(line, file=sys.stderr)
    dagster_home.prepare(home, profile.orchestration)
    return profile


def _check_own_reward(home: Home, profile: Profile) -> None:
    """Check an own reward now, not after the warm-up. Raises RewardFileError, UnverifiedReward."""
    config, reward = profile.reward, reward_of(profile.reward)
    if not config.file or config.unverified:
        return
    from assets.verified_reward import keep, known, stamp
    from rewards.battery import run_battery

    if known(home, config) is None:
        with Sandbox(profile.sandbox) as sandbox:
            keep(
                home,
                config,
                run_battery(
                    reward, sandbox, reward.task if isinstance(reward, OwnReward) else "code"
                ),
            )
    stamp(home, config)


def start_worker(settings: Settings, job: str, partition: str, why: str) -> subprocess.Popen[bytes]:
    """The run's process; its output goes to worker.log in the run's folder."""
    folder = settings.home.runs / partition
    folder.mkdir(parents=True, exist_ok=True)
    environment = (
        os.environ
        | settings.environment()
        | {
            MARK: str(folder),
            "PYTHONUNBUFFERED": "1",
        }
    )
    environment.setdefault(
        "OMP_WAIT_POLICY", "PASSIVE"
    )  # torch's threads sleep when they wait: on two busy cores spinning ones cost minutes
    environment.setdefault(
        "HOME", pwd.getpwuid(os.getuid()).pw_dir
    )  # Ray and Hugging Face look for it
    command = [sys.executable, "-m", "pipelines.run_worker", job, partition, str(os.getpid()), why]
    with (folder / "worker.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )


def watched(
    start: Callable[[], subprocess.Popen[bytes]],
    view: View,
    pipeline_run: PipelineRun,
    console: Console,
) -> int:
    """Run the worker to its end with a live view; it is restarted at most twice if a signal ended
    it.
    """
    for attempt in range(RESTARTS + 1):
        process = start()
        try:
            code = _follow(process, view, pipeline_run, console)
        except KeyboardInterrupt:
            process.kill()
            process.wait()
            console.print("Stopped. What was done is kept: the same command goes on from here.")
            return INTERRUPTED
        if code >= 0:
            return code
        name = signal.Signals(-code).name
        again = (
            f"started again ({attempt + 1} of {RESTARTS}), it goes on where it was"
            if attempt < RESTARTS
            else "that was the last attempt"
        )
        view.note(f"the run's process was ended by {name}: {again}")
        if not console.is_terminal:
            console.print(view.notes[-1], soft_wrap=True)
    return 1


def _follow(
    process: subprocess.Popen[bytes], view: View, pipeline_run: PipelineRun, console: Console
) -> int:
    sampler = Sampler(pipeline_run)
    if not console.is_terminal:
        while (code := process.poll()) is None:
            _tell(view, console)
            sampler.look(view)
            time.sleep(0.5)
        _tell(view, console)
        return code
    with Live(view, console=console, refresh_per_second=8, transient=False):
        while (code := process.poll()) is None:
            view.follow()
            sampler.look(view)
            time.sleep(0.2)
        view.follow()
    return code


def _tell(view: View, console: Console) -> None:
    for line in view.follow():
        console.print(line, soft_wrap=True, highlight=False)


class Sampler:
    """Write memory and minutes of a run into its record every few seconds, so that a kill loses no
    more.
    """

    def __init__(self, pipeline_run: PipelineRun, *, counts: bool = True) -> None:
        """counts: whether this watcher's minutes are the run's; only who started it says so."""
        self.pipeline_run, self.counts = pipeline_run, counts
        self.looked = time.monotonic()

    def look(self, view: View) -> None:
        now = time.monotonic()
        if now - self.looked < SAMPLE_S or not (self.pipeline_run.folder / "chain.json").exists():
            return
        view.memory_gib = pss_bytes(of_run(str(self.pipeline_run.folder))) / 2**30
        record = self.pipeline_run.record
        view.peak_gib = max(record.peak_pss_gib, view.memory_gib)
        if self.counts:
            minutes = record.minutes + (now - self.looked) / 60
            self.pipeline_run.change(
                peak_pss_gib=round(view.peak_gib, 2), minutes=round(minutes, 4)
            )
        self.looked = now


def explain_failure(folder: Path, code: int, console: Console) -> None:
    """One line from the worker's log: its own last error, or where to look."""
    log = folder / "worker.log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    told = next((line for line in reversed(lines[-200:]) if line.startswith("error: ")), None)
    style = "yellow" if code == BUSY else "bold red"
    if (
        shutil.disk_usage(folder).free < NO_ROOM
    ):  # then a log's last words may be missing, or be about something that failed for want of room
        told = f"error: {Home(folder.parent.parent).full()}"
    console.print(
        told or f"error: the run ended with code {code} and no word",
        style=style,
        soft_wrap=True,
        highlight=False,
    )
    if code != BUSY:
        console.print(f"Its log: {log}", soft_wrap=True, highlight=False)


__all__ = ["NotReady", "demo", "ready", "start_worker", "watched"]
