"""`ratchet tune`: search training settings with Optuna, which stops bad trials early."""

from __future__ import annotations

from rich.console import Console

from artifacts.hashing import hash_data
from experiments.search_space import check_search_space, excluded_keys, space_of
from experiments.study import Study, StudyResult, run_study
from experiments.training import trainings_at_once
from experiments.trials import Trials, report, show
from resources.config.load import layers
from resources.settings import Settings
from verl_jobs.job import TrainingJob


def tune(settings: Settings, trials: int | None, minutes: float | None, console: Console) -> int:
    """Search until `trials` have ended or the minutes are over, and print the table.

    None: the profile's value. Returns exit code 0, 1 if a trial failed, 130 if interrupted.
    """
    profile = settings.profile
    check_search_space(profile, layers(settings.profile_name, settings.changes))
    if excluded := excluded_keys(profile):
        console.print(f"{excluded}.", highlight=False, soft_wrap=True)
    count = trials or profile.tuning.trials

    limit = profile.tuning.minutes if minutes is None else minutes
    return run_study(
        settings,
        f"ratchet tune --trials {count}",
        console,
        lambda study: search(study, count, limit, console),
    )


def search(study: Study, count: int, minutes: float, console: Console) -> StudyResult:
    """Run the trials that remain of `count`, then write and print the table."""
    from experiments.search import open_search, run_trial

    base = study.job(1000 * study.profile.seed + 1)
    record = open_search(study, search_name(study, base), count, console)
    history, at_once = Trials(record.search, base), trainings_at_once(study)
    console.print(
        f"{study.id}: {len(history.ended())} of {count} trials done, {at_once} at a time",
        highlight=False,
        soft_wrap=True,
    )
    record.run(
        record.sampled(count),
        lambda trial: run_trial(trial, history, study, console),
        at_once=at_once,
        minutes=minutes,
    )
    remaining = max(0, count - len(history.ended()))
    show(history, report(history, study), study, console)
    if remaining:
        text = f"{remaining} of {count} trials remain: the same command resumes."
        console.print(text, highlight=False)
    return StudyResult(len(history.failed()), remaining)


def search_name(study: Study, base: TrainingJob) -> str:
    """Return the name of this study's search in its record.

    A search is identified by its space, its training settings, inputs and reward.
    """
    identity = {
        "space": {key: span.model_dump() for key, span in space_of(study.profile).items()},
        "training": base.training.model_dump(mode="json"),
        "inputs": base.inputs,
        "reward": base.reward_hash,
    }
    return f"tune-{hash_data(identity)[:10]}"
