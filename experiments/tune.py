"""`ratchet tune`: search training settings with Optuna, which stops bad trials early."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from artifacts.hashing import hash_data
from experiments.search_space import check_search_space, excluded_keys, space_of
from experiments.study import Study, StudyResult, run_study
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

    def measure(study: Study) -> StudyResult:
        from experiments.search import Budget, open_search, run_search

        base = study.job(1000 * study.profile.seed + 1)
        history = Trials(open_search(search_folder(study, base), study.profile, count), base)
        at_once = concurrent_trials(study)
        console.print(
            f"{study.id}: {len(history.ended())} of {count} trials done, {at_once} at a time",
            highlight=False,
            soft_wrap=True,
        )
        limit = profile.tuning.minutes if minutes is None else minutes
        budget = Budget(count, limit)
        run_search(study, history, trainer_command(study), budget, at_once, console)
        remaining = max(0, count - len(history.ended()))
        show(history, report(history, study), study, console)
        if remaining:
            console.print(
                f"{remaining} of {count} trials remain: the same command resumes.",
                highlight=False,
            )
        return StudyResult(len(history.failed()), remaining)

    return run_study(settings, f"ratchet tune --trials {count}", console, measure)


def search_folder(study: Study, base: TrainingJob) -> Path:
    """Return the folder of this study's search.

    A search is identified by its space, its training settings, inputs and reward.
    """
    identity = {
        "space": {key: span.model_dump() for key, span in space_of(study.profile).items()},
        "training": base.training.model_dump(mode="json"),
        "inputs": base.inputs,
        "reward": base.reward_hash,
    }
    return study.stage.pipeline_run.folder / "tuning" / hash_data(identity)[:10]


def trainer_command(study: Study) -> list[str]:
    """Return the command that trains a trial, without its job and the parent's process id."""
    ray = study.profile.ray
    folder = str(study.home.path / "ray")
    return [sys.executable, "-m", "experiments.trial_process", folder, ray.bind, ray.address]


def concurrent_trials(study: Study) -> int:
    """Return how many trials train at the same time."""
    ray_settings = study.profile.ray
    if study.profile.tuning.at_once or not ray_settings.address:
        return study.profile.tuning.at_once or 1
    from ray.util.state import list_nodes

    gpus = sum(
        node.resources_total.get("GPU", 0)
        for node in list_nodes(address=ray_settings.address, filters=[("state", "=", "ALIVE")])
    )
    return max(1, int(gpus) // study.profile.training.ranks)
