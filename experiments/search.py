"""The search of `ratchet tune`: Optuna proposes trials and stops bad ones early.

In: a profile's search space. Out: the record of a search, and its trials as cells.
"""

from __future__ import annotations

from contextlib import closing

import optuna
from rich.console import Console

from experiments.loop import CellFailed, RunningCell, StudyRecord
from experiments.search_space import check_search_space, own_point, whole
from experiments.study import Study
from experiments.training import training
from experiments.trials import Point, Trials, describe, discard_saves, validations
from resources.config.profile import Profile
from verl_jobs.job import TrainingJob

# The first third of the trials, at least 4 and at most 10, is sampled at random; the others come
# from TPE's model of the results.
TRIALS_PER_RANDOM_TRIAL = 3


def open_search(study: Study, name: str, trials: int, console: Console) -> StudyRecord:
    """Return the record of a search. A new one begins with the profile's own values."""
    profile, tuning = study.profile, study.profile.tuning
    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=min(profile.training.save_every, profile.training.steps),
        reduction_factor=tuning.reduction,
    )
    record = study.record(name, console, pruner)
    known = record.search.trials
    record.search.sampler = optuna.samplers.TPESampler(
        multivariate=True,
        constant_liar=True,
        n_startup_trials=min(10, max(4, trials // TRIALS_PER_RANDOM_TRIAL)),
        # Another seed than before a resume, or it would sample the same points again.
        seed=1000 * profile.seed + len(known),
    )
    if not known and (first := own_point(profile)):
        record.search.enqueue_trial(first)
    return record


def suggest(trial: optuna.Trial, profile: Profile) -> Point:
    """Return the trial's point of the search space. Both bounds of a range are included."""
    for key, span in check_search_space(profile).items():
        if span.choice:
            trial.suggest_categorical(key, span.choice)
            continue
        low, high = span.log_uniform or span.uniform or (0.0, 0.0)
        if whole(profile, key):
            trial.suggest_int(key, int(low), int(high))
        else:
            trial.suggest_float(key, low, high, log=span.log_uniform is not None)
    return dict(trial.params)


def run_trial(trial: optuna.Trial, trials: Trials, study: Study, console: Console) -> RunningCell:
    """Train a trial to its end, or until others are better; only its metrics stay."""
    title, point = trial.user_attrs["title"], suggest(trial, study.profile)
    console.print(f"{title}: {describe(point)}", highlight=False, soft_wrap=True)
    job = trials.job(point)
    reported, worse = set(trials.search.trials[trial.number].intermediate_values), False
    with closing(training(job, study, title, console)) as run:
        for _ in run:
            if worse := _report(trial, job, reported):
                break
            yield
    if worse:
        console.print(f"  {title}: stopped early, others were better", highlight=False)
    else:
        _report(trial, job, reported)
    discard_saves(job)
    if worse:
        raise optuna.TrialPruned
    curve = validations(job)
    if not curve:
        raise CellFailed(f"its training made no validation: {job.path}")
    return max(score for _, score in curve)


def _report(trial: optuna.Trial, job: TrainingJob, reported: set[int]) -> bool:
    """Report the validations that are not in `reported` yet, and add them to it.

    Return whether other trials were better at one of them, before the training's end.
    """
    best = 0.0
    for step, score in validations(job):
        best = max(best, score)
        if step not in reported:
            reported.add(step)
            trial.report(best, step)
            # asked for the last step too, because only an asked trial is compared with later ones
            if trial.should_prune() and step < job.training.steps and job.done is None:
                return True
    return False
