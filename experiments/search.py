"""The search loop of `ratchet tune`: Optuna proposes trials and stops bad ones early.

The state of a search is Optuna's journal in its folder and the trainings' own folders. A trial that
a kill interrupted is still running in the journal: the next command resumes its training at its
last checkpoint, and reports no validation twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console

from artifacts.atomic import write_atomic
from experiments.search_space import check_search_space, own_point, whole
from experiments.study import Study
from experiments.trials import Trials, discard_saves, last_log_line, validations
from resources.config.profile import Profile

POLL_S = 0.5
END_S = 90.0  # a training saves before it ends, and gets 60 s for that (resources/ray/job.py)
# The first third of the trials, at least 4 and at most 10, is sampled at random; the others come
# from TPE's model of the results.
TRIALS_PER_RANDOM_TRIAL = 3


@dataclass(frozen=True)
class Budget:
    """When a search ends: after this many trials, or after this many minutes (0: no limit)."""

    trials: int
    minutes: float


def domains(profile: Profile) -> dict[str, BaseDistribution]:
    """Return the search space as Optuna's distributions. Both bounds are included."""
    by_key: dict[str, BaseDistribution] = {}
    for key, span in check_search_space(profile).items():
        if span.choice:
            by_key[key] = CategoricalDistribution(span.choice)
            continue
        low, high = span.log_uniform or span.uniform or (0.0, 0.0)
        by_key[key] = (
            IntDistribution(int(low), int(high))
            if whole(profile, key)
            else FloatDistribution(low, high, log=span.log_uniform is not None)
        )
    return by_key


def open_search(folder: Path, profile: Profile, trials: int) -> optuna.Study:
    """Return the search in a folder. A new one begins with the profile's own values."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    training, tuning = profile.training, profile.tuning
    folder.mkdir(parents=True, exist_ok=True)
    search = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(folder / "trials.journal"))),
        study_name="tune",
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.SuccessiveHalvingPruner(
            min_resource=min(tuning.first_look or training.save_every, training.steps),
            reduction_factor=tuning.reduction,
        ),
    )
    search.sampler = optuna.samplers.TPESampler(
        multivariate=True,
        constant_liar=True,
        n_startup_trials=min(10, max(4, trials // TRIALS_PER_RANDOM_TRIAL)),
        # Another seed than before a resume, or it would sample the same points again.
        seed=1000 * profile.seed + len(search.trials),
    )
    if not search.trials and (first := own_point(profile)):
        search.enqueue_trial(first)
    return search


@dataclass
class RunningTrial:
    """A trial whose training is a child process of this one."""

    trials: Trials
    trial: optuna.Trial
    process: subprocess.Popen[bytes]
    reported: set[int]

    @property
    def number(self) -> int:
        return int(self.trial.number) + 1

    def follow(self, study: Study, console: Console) -> bool:
        """Report new validations; return whether the trial has ended."""
        job, steps = self.trials.job(self.trial.params), study.profile.training.steps
        running, done = self.process.poll() is None, job.done is not None
        best = 0.0
        for step, score in validations(job):
            best = max(best, score)
            if step in self.reported:
                continue
            self.reported.add(step)
            self.trial.report(best, step)
            text = f"trial {self.number}, validation {best:.2f}"
            study.stage.report.progress.at(step, steps, text)
            text = f"step {step} of {steps}, best validation {100 * best:.1f} %"
            self._print(console, text)
            if step < steps and not done and self.trial.should_prune():
                self.stop()
                self.trials.search.tell(self.trial, state=TrialState.PRUNED)
                discard_saves(job)
                self._print(console, f"stopped early, others were better at step {step}")
                return True
        if done and self.reported:
            self.stop()
            self.trials.search.tell(self.trial, best)
            discard_saves(job)
            return True
        if not running:
            why = last_log_line(job)
            self.trial.set_user_attr("failed", why)
            console.print(
                f"  trial {self.number} failed: {why}", style="red", highlight=False, soft_wrap=True
            )
        return not running

    def stop(self) -> None:
        """End the training, which saves first."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def _print(self, console: Console, text: str) -> None:
        console.print(f"  trial {self.number}: {text}", highlight=False, soft_wrap=True)


def run_search(
    study: Study,
    trials: Trials,
    trainer: Sequence[str],
    budget: Budget,
    concurrency: int,
    console: Console,
) -> None:
    """Train trials until the budget is used up; running ones are saved and ended.

    trainer: the command that trains a trial, without its job and the parent's process id.
    """
    space, began = domains(study.profile), time.monotonic()
    tried, running = set[int](), list[RunningTrial]()
    try:
        while not budget.minutes or time.monotonic() - began < 60 * budget.minutes:
            while len(running) < concurrency and (
                trial := next_trial(trials.search, space, budget.trials, tried)
            ):
                tried.add(trial.number)
                running.append(_start(trials, trial, trainer))
                console.print(
                    f"trial {trial.number + 1}: {trials.describe(trial.params)}",
                    highlight=False,
                    soft_wrap=True,
                )
            if not running:
                return
            time.sleep(POLL_S)
            running = [each for each in running if not each.follow(study, console)]
    finally:
        for each in running:
            each.stop()


def next_trial(
    search: optuna.Study, space: Mapping[str, BaseDistribution], count: int, tried: set[int]
) -> optuna.Trial | None:
    """Return a trial that an earlier command left unfinished, else a new one; None at the end."""
    known = search.get_trials(deepcopy=False)
    for trial in known:
        if trial.state is TrialState.RUNNING and trial.number not in tried:
            resumed = optuna.Trial(search, trial._trial_id)
            if trial.user_attrs.get("failed"):
                resumed.set_user_attr("failed", "")
            return resumed
    begun = [trial for trial in known if trial.state is not TrialState.WAITING]
    return search.ask(dict(space)) if len(begun) < count else None


def _start(trials: Trials, trial: optuna.Trial, trainer: Sequence[str]) -> RunningTrial:
    job = trials.job(trial.params)
    job.path.mkdir(parents=True, exist_ok=True)
    file = job.path / "trial.json"
    write_atomic(file, job.model_dump_json(indent=1))
    with (job.path / "trial.log").open("ab") as log:
        process = subprocess.Popen(
            [*trainer, str(file), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    frozen: FrozenTrial = trials.search.trials[trial.number]
    return RunningTrial(trials, trial, process, set(frozen.intermediate_values))
