"""Start a Dagster job in a process of its own, and show its progress live.

The process (pipelines/run_worker.py) ends with this one. The view only reads the run's files.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.live import Live

from evaluation.benchmarks.embedded import own_heldout
from pipelines import instance
from pipelines.process import pss_bytes, run_processes
from pipelines.run_worker import BUSY
from pipelines.watch.text import print_text
from pipelines.watch.view import View, stages_of
from problems.prompt import prompt_text
from problems.stored import stored_problems
from resources import lease
from resources.capacity import check_machines, memory_gib, not_checked
from resources.config.load import ProfileError, profile_path
from resources.config.profile import Profile
from resources.cost import check_budget
from resources.home import Home, NotReady
from resources.plugin_check import check_plugins
from resources.preflight import check_policy, check_reward, check_start_of
from resources.ray.head import live_holders
from resources.ray.private import RUN, responds
from resources.registry.ledger_database import LedgerUnreachable
from resources.run_record import PipelineRun, next_id, readable
from resources.settings import Settings
from rewards.own import reward_of
from sandbox.sandbox import Sandbox

RESTARTS = 2  # of a worker that a signal ended
SAMPLE_S = 4.0  # seconds between two samples of minutes and memory
INTERRUPTED = 130
TALK = """Talk to the champion: `ratchet serve`, then in another terminal
  curl -s localhost:8000/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model": "champion", "messages": [{"role": "user", "content":
         QUESTION}]}'"""
EMBEDDED_QUESTION = "Given a list of integers x, solve(x) should skip the first 2."
FULL_DISK_BYTES = 2**20  # free bytes below which the disk counts as full


def demo(settings: Settings, console: Console, command: str = "ratchet demo") -> int:
    """Resume the open pipeline run of this home, else start the next one, and show it to its
    decision. command: that starts it, for the record. Return 0 for a decision, 3 if another process
    trains in this home, 130 for Ctrl-C, else 1.
    """
    settings = resume_settings(settings)
    prepare_run(settings)
    home = settings.home
    if holder := lease.holder(home.lease):
        print(f"error: {lease.LeaseHeld(holder, home.lease)}", file=sys.stderr)
        return BUSY
    run_id = next_id(home.runs)
    run = PipelineRun(home.runs, run_id)
    resumed = ", resumed" if run.stored else ""
    title = f"{run_id}{resumed} · profile {settings.title}"
    view = View(run.folder, title, stages_of(settings.profile))
    code = run_with_view(
        lambda: start_worker(settings, "full_pipeline", run_id, command),
        view,
        run,
        console,
    )
    if code:
        if code != INTERRUPTED:
            explain_failure(run.folder, code)
        return code
    from pipelines.watch.summary import show

    show(home.reports / run_id, run.record, console)
    print_text(console, TALK.replace("QUESTION", _question(settings)))
    return 0


def _question(settings: Settings) -> str:
    """Return a task that the champion may be asked, as JSON inside single quotes of a shell: of a
    named base the shortest that its gate held out, in the form in which it was trained.
    """
    question = EMBEDDED_QUESTION
    if settings.profile.base:
        store = settings.home.store(settings.profile.storage.root)
        problems = stored_problems(store.require("datasets", "clean_problems").path)
        question = min(map(prompt_text, own_heldout(problems) or problems), key=len)
    return json.dumps(question).replace("'", "\\u0027")


def resume_settings(settings: Settings) -> Settings:
    """Return the settings with profile and changes of the open pipeline run, unless the command
    line gives others. A run of another host may name a profile file that is not here: then the
    profile is the home's.
    """
    runs = settings.home.runs
    open_run = next(
        (record for record in readable(runs) if record.id == next_id(runs)),
        None,
    )
    if open_run is None:
        return settings
    return replace(
        settings,
        profile_name=settings.profile_name
        if settings.chosen or not _is_here(open_run.profile)
        else open_run.profile,
        changes=settings.changes or open_run.changes,
    )


def _is_here(profile: str) -> bool:
    try:
        return bool(profile_path(profile))
    except ProfileError:
        return False


def prepare_run(settings: Settings, *, trains: bool = True, base: Path | None = None) -> Profile:
    """Check home and profile before anything starts, and set DAGSTER_HOME. Return the profile.

    base: the folder that the training starts from, instead of the profile's. Raises NotReady,
    ProfileError, UnfitStart, PluginError, RewardFileError or UnverifiedReward.
    """
    home, profile = settings.home, settings.profile
    profile = profile.model_copy(update={"base": str(base)}) if base else profile
    home.make()
    if profile.dataset:
        from assets.fetched_dataset import dataset_manifest

        dataset_manifest(profile.dataset)
    if trains:
        check_budget(settings, datetime.now(UTC))
        check_reward(home, profile)
        _try_own_reward(home, profile)
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
        # The training of a killed command still has its memory, and the run attaches to it.
        running = live_holders(home.path / "ray")
        home.check_capacity(
            disk_gib=profile.needs.disk_gib, memory_gib=0.0 if running else memory_gib(profile)
        )
        check_machines(profile)
        if warning := not_checked(profile):
            print(warning, file=sys.stderr)
    settings.remember()
    instance.prepare(home, profile.orchestration)
    return profile


def _try_own_reward(home: Home, profile: Profile) -> None:
    """Run the battery on a reward file before the start, not only after the warm-up.

    Raises UnverifiedReward.
    """
    config = profile.reward
    if not config.file or config.unverified:
        return
    from assets.verified_reward import battery_stamp, store_result, stored_result
    from rewards.battery.battery import run_battery

    if stored_result(home, config) is None:
        with Sandbox(profile.sandbox) as sandbox:
            store_result(
                home,
                config,
                run_battery(reward_of(config), sandbox),
            )
    battery_stamp(home, config)


def start_worker(
    settings: Settings, job: str, partition: str, reason: str
) -> subprocess.Popen[bytes]:
    """Start the run's process; its output goes to worker.log in the run's folder."""
    folder = settings.home.runs / partition
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | settings.environment()
    environment |= {RUN: str(folder), "PYTHONUNBUFFERED": "1"}
    # torch's threads sleep while they wait: on two busy cores, spinning threads cost minutes.
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "HOME" not in environment:  # Ray and Hugging Face need it
        environment["HOME"] = pwd.getpwuid(os.getuid()).pw_dir
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
    """Run the worker to its end with a live view, and return its exit code.

    If a signal ends the worker, it is restarted, at most twice.
    """
    for attempt in range(RESTARTS + 1):
        process = start()
        try:
            code = _wait(process, view, pipeline_run, console)
        except KeyboardInterrupt:
            process.kill()
            process.wait()
            console.print("Stopped. The same command resumes from the last checkpoint.")
            return INTERRUPTED
        if code >= 0:
            return code
        name = signal.Signals(-code).name
        restart = (
            f"restart {attempt + 1} of {RESTARTS}" if attempt < RESTARTS else "no restart left"
        )
        view.note(f"signal {name} ended the run's process: {restart}")
        if not console.is_terminal:
            console.print(view.notes[-1], soft_wrap=True)
    return 1


def _wait(
    process: subprocess.Popen[bytes], view: View, pipeline_run: PipelineRun, console: Console
) -> int:
    sampler = ResourceSampler(pipeline_run)
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
        print_text(console, line)


class ResourceSampler:
    """Writes memory and minutes of a run into its record every few seconds, so a kill loses only
    these. Reading a large process's memory takes the kernel long, so it may cost 1 % of a core.
    """

    def __init__(self, pipeline_run: PipelineRun, *, counts: bool = True) -> None:
        """counts: add the minutes to the record; only for the process that started the run."""
        self.pipeline_run, self.counts = pipeline_run, counts
        self.sampled_at, self.reads_memory_at = time.monotonic(), 0.0

    def sample(self, view: View) -> None:
        """Write a sample if it is time for one; a database that is away costs only this one."""
        if time.monotonic() - self.sampled_at >= SAMPLE_S:
            with suppress(LedgerUnreachable):
                self._sample(view)

    def _sample(self, view: View) -> None:
        now = time.monotonic()
        if (record := self.pipeline_run.stored) is None:
            return
        if now >= self.reads_memory_at:
            begun = time.thread_time()  # not the clock: on a busy machine a read takes a minute
            view.memory_gib = pss_bytes(run_processes(str(self.pipeline_run.folder))) / 2**30
            self.reads_memory_at = now + 100 * (time.thread_time() - begun)
        view.peak_gib = max(record.peak_pss_gib, view.memory_gib)
        if self.counts:
            minutes = record.minutes + (now - self.sampled_at) / 60
            self.pipeline_run.change(
                peak_pss_gib=round(view.peak_gib, 2), minutes=round(minutes, 4)
            )
        self.sampled_at = now


def explain_failure(folder: Path, code: int) -> None:
    """Print the last error of the worker's log in one line on stderr, and the log's path."""
    log = folder / "worker.log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    error_line = next((line for line in reversed(lines[-200:]) if line.startswith("error: ")), None)
    # On a full disk the log's last lines may be missing, or name a consequence.
    if shutil.disk_usage(folder).free < FULL_DISK_BYTES:
        error_line = f"error: {Home(folder.parent.parent).full()}"
    unknown = f"error: the run ended with exit code {code}, without a message"
    print(error_line or unknown, file=sys.stderr)
    if code != BUSY:
        print(f"Log: {log}", file=sys.stderr)
