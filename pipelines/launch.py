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
from pipelines.process import pss_bytes, run_processes
from pipelines.run_worker import BUSY
from pipelines.watch.view import View
from resources import lease
from resources.capacity import check_machines, memory_gib, not_checked
from resources.config.profile import Profile
from resources.home import Home, NotReady
from resources.plugin_check import check_plugins
from resources.preflight import check_policy, check_start_of
from resources.ray.head import live_holders
from resources.ray.private import RUN, responds
from resources.run_record import PipelineRun, next_id, records
from resources.settings import Settings
from rewards.own import OwnReward, reward_of
from sandbox.sandbox import Sandbox

RESTARTS = 2  # of a worker that a signal ended
SAMPLE_S = 4.0  # between two samples of memory
INTERRUPTED = 130
FULL_DISK_BYTES = 2**20  # free bytes below which the disk counts as full


def demo(settings: Settings, console: Console) -> int:
    """Resume the open run of this home, else start the next one, until its decision. Exit code: 0
    decided, 3 another process trains here, else 1.
    """
    settings = resume_settings(settings)
    prepare_run(settings)
    home = settings.home
    if holder := lease.holder(home.lease):
        console.print(str(lease.LeaseHeld(holder, home.lease)), style="yellow", soft_wrap=True)
        return BUSY
    chain_id = next_id(home.runs)
    folder = home.runs / chain_id
    record_file = folder / "chain.json"
    resumed = ", resumed" if record_file.exists() else ""
    title = f"{chain_id}{resumed} · profile {settings.title}"
    view = View(folder, title)
    code = run_with_view(
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


def resume_settings(settings: Settings) -> Settings:
    """Return the profile and changes that the open run began with, unless others are given now."""
    runs = settings.home.runs
    open_run = next(
        (
            record
            for record in (records(runs) if runs.is_dir() else [])
            if record.id == next_id(runs)
        ),
        None,
    )
    if open_run is None:
        return settings
    return replace(
        settings,
        profile_name=settings.profile_name if settings.chosen else open_run.profile,
        changes=settings.changes or open_run.changes,
    )


def prepare_run(settings: Settings, *, trains: bool = True, base: Path | None = None) -> Profile:
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
        if profile.ray.address and not responds(profile.ray.address):
            raise NotReady(
                f"no Ray cluster at {profile.ray.address} (profile key ray.address): start it, "
                "or remove the key"
            )
        running = live_holders(
            home.path / "ray"
        )  # the training of a killed command still has its memory; the run attaches to it
        home.check_capacity(
            disk_gib=profile.needs.disk_gib, memory_gib=0.0 if running else memory_gib(profile)
        )
        check_machines(profile)
        if warning := not_checked(profile):
            print(warning, file=sys.stderr)
    dagster_home.prepare(home, profile.orchestration)
    return profile


def _check_own_reward(home: Home, profile: Profile) -> None:
    """Check an own reward now, not after the warm-up. Raises RewardFileError, UnverifiedReward."""
    config, reward = profile.reward, reward_of(profile.reward)
    if not config.file or config.unverified:
        return
    from assets.verified_reward import battery_stamp, store_result, stored_result
    from rewards.battery.battery import run_battery

    if stored_result(home, config) is None:
        with Sandbox(profile.sandbox) as sandbox:
            store_result(
                home,
                config,
                run_battery(
                    reward, sandbox, reward.task if isinstance(reward, OwnReward) else "code"
                ),
            )
    battery_stamp(home, config)


def start_worker(
    settings: Settings, job: str, partition: str, reason: str
) -> subprocess.Popen[bytes]:
    """The run's process; its output goes to worker.log in the run's folder."""
    folder = settings.home.runs / partition
    folder.mkdir(parents=True, exist_ok=True)
    environment = (
        os.environ
        | settings.environment()
        | {
            RUN: str(folder),
            "PYTHONUNBUFFERED": "1",
        }
    )
    environment.setdefault(
        "OMP_WAIT_POLICY", "PASSIVE"
    )  # torch's threads sleep when they wait: on two busy cores spinning ones cost minutes
    environment.setdefault(
        "HOME", pwd.getpwuid(os.getuid()).pw_dir
    )  # Ray and Hugging Face look for it
    command = [
        sys.executable,
        "-m",
        "pipelines.run_worker",
        job,
        partition,
        str(os.getpid()),
        reason,
    ]
    with (folder / "worker.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )


def run_with_view(
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
            code = _wait(process, view, pipeline_run, console)
        except KeyboardInterrupt:
            process.kill()
            process.wait()
            console.print("Stopped. Finished work is kept; the same command resumes it.")
            return INTERRUPTED
        if code >= 0:
            return code
        name = signal.Signals(-code).name
        outlook = (
            f"restart {attempt + 1} of {RESTARTS}; it resumes"
            if attempt < RESTARTS
            else "no restart left"
        )
        view.note(f"signal {name} ended the run's process: {outlook}")
        if not console.is_terminal:
            console.print(view.notes[-1], soft_wrap=True)
    return 1


def _wait(
    process: subprocess.Popen[bytes], view: View, pipeline_run: PipelineRun, console: Console
) -> int:
    sampler = Sampler(pipeline_run)
    if not console.is_terminal:
        while (code := process.poll()) is None:
            _print_news(view, console)
            sampler.sample(view)
            time.sleep(0.5)
        _print_news(view, console)
        return code
    with Live(view, console=console, refresh_per_second=8, transient=False):
        while (code := process.poll()) is None:
            view.follow()
            sampler.sample(view)
            time.sleep(0.2)
        view.follow()
    return code


def _print_news(view: View, console: Console) -> None:
    for line in view.follow():
        console.print(line, soft_wrap=True, highlight=False)


class Sampler:
    """Write memory and minutes of a run into its record every few seconds, so that a kill loses no
    more.
    """

    def __init__(self, pipeline_run: PipelineRun, *, counts: bool = True) -> None:
        """counts: whether this watcher's minutes are the run's; only who started it says so."""
        self.pipeline_run, self.counts = pipeline_run, counts
        self.sampled_at = time.monotonic()

    def sample(self, view: View) -> None:
        now = time.monotonic()
        if (
            now - self.sampled_at < SAMPLE_S
            or not (self.pipeline_run.folder / "chain.json").exists()
        ):
            return
        view.memory_gib = pss_bytes(run_processes(str(self.pipeline_run.folder))) / 2**30
        record = self.pipeline_run.record
        view.peak_gib = max(record.peak_pss_gib, view.memory_gib)
        if self.counts:
            minutes = record.minutes + (now - self.sampled_at) / 60
            self.pipeline_run.change(
                peak_pss_gib=round(view.peak_gib, 2), minutes=round(minutes, 4)
            )
        self.sampled_at = now


def explain_failure(folder: Path, code: int, console: Console) -> None:
    """One line from the worker's log: its own last error, or where to look."""
    log = folder / "worker.log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    error_line = next((line for line in reversed(lines[-200:]) if line.startswith("error: ")), None)
    style = "yellow" if code == BUSY else "bold red"
    if (
        shutil.disk_usage(folder).free < FULL_DISK_BYTES
    ):  # then the log's last lines may be missing, or name an error that the full disk caused
        error_line = f"error: {Home(folder.parent.parent).full()}"
    console.print(
        error_line or f"error: the run ended with exit code {code} and without a message",
        style=style,
        soft_wrap=True,
        highlight=False,
    )
    if code != BUSY:
        console.print(f"Log: {log}", soft_wrap=True, highlight=False)


__all__ = ["NotReady", "demo", "prepare_run", "run_with_view", "start_worker"]
