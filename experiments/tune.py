"""`ratchet tune`: trainings from one start with different settings, drawn by Optuna and stopped
early by Ray Tune's ASHA.

The state of a search is its trials' folders. When the command is repeated, the searcher gets them
in their order, with their results, and the search resumes: a kill loses no more than a training's
last save, and more trials can be added later.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from artifacts.atomic import write_atomic
from artifacts.hashing import hash_data
from experiments.search_space import check_search_space, domains, excluded_keys, own_point, space_of
from experiments.study import Ended, Study, conduct
from experiments.trials import Trials, report, show
from resources.ray.private import light_head
from resources.settings import Settings

# one trial in so many is drawn at random before the model of good settings is used, but at least 4
# and at most 10
COUNT_OF_RANDOM = 3
ENVIRONMENT = {  # read by Ray when it is imported
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    # otherwise Tune searches for our Ray, which listens on the loopback, on this machine's other
    # address
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


@dataclass(frozen=True)
class Budget:
    trials: int
    minutes: float  # 0: none


def tune(settings: Settings, trials: int | None, minutes: float | None, console: Console) -> int:
    """Search until `trials` have ended or the minutes are over, and print their table. Exit code 0,
    1 if a trial failed, 130 if interrupted.
    """
    profile = settings.profile
    check_search_space(profile)
    if less := excluded_keys(profile):
        console.print(f"{less}.", highlight=False, soft_wrap=True)
    limit = profile.tuning.minutes if minutes is None else minutes
    budget = Budget(trials or profile.tuning.trials, limit)

    def measure(study: Study) -> Ended:
        known = trials_of(study)
        if len(known.ended()) < budget.trials:
            search(study, known, command(study), budget, console)
        left = budget.trials - len(known.ended())
        show(known, report(known, study), study, console)
        if left:
            console.print(
                f"{left} of {budget.trials} trials are left: the same command resumes.",
                highlight=False,
            )
        return Ended(len(known.failed()), left)

    return conduct(settings, f"ratchet tune --trials {budget.trials}", console, measure)


def trials_of(study: Study) -> Trials:
    """Return the existing trials of this space over this training; another space or training is
    another search.
    """
    base = study.job(1000 * study.profile.seed + 1)
    space = {key: span.model_dump() for key, span in space_of(study.profile).items()}
    key = hash_data(
        {
            "space": space,
            "training": base.training.model_dump(mode="json"),
            "inputs": base.inputs,
            "reward": base.reward_hash,
        }
    )
    return Trials(study.stage.pipeline_run.folder / "tuning" / key[:10], base)


def search(
    study: Study, trials: Trials, trainer: Sequence[str], budget: Budget, console: Console
) -> None:
    """Runs Ray Tune until the budget is spent. Raises KeyboardInterrupt where a person ended it.

    trainer: the command that trains a trial (verl_jobs/search/tune_trainable.py). console: one with
       its own file, because what Tune prints goes to a log.
    """
    os.environ |= ENVIRONMENT
    places = at_once(study)
    write_atomic(trials.command, json.dumps(list(trainer)))
    console.print(
        f"{study.id}: {len(trials.ended())} of {budget.trials} trials there, {places} at a time",
        highlight=False,
        soft_wrap=True,
    )
    began = time.monotonic()
    with (trials.folder / "tune.log").open("a") as log:
        head = light_head(trials.folder / "ray", places + 1)
        import ray
        from ray import tune as ray_tune

        # Tune's own tables and warnings, of which ours are the short form
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            ray.init(address=head.address, log_to_driver=False, logging_level="error")
            try:
                followed = _follower(trials, study, console)
                config = ray_tune.RunConfig(
                    name="last",
                    storage_path=str(trials.folder / "tune"),
                    verbose=0,
                    callbacks=[followed],
                )
                _tuner(study, trials, budget, places, config).fit()
            finally:
                ray.shutdown()
    in_time = not budget.minutes or time.monotonic() - began < 60 * budget.minutes
    if in_time and set(trials.records()) - set(trials.ended()) - set(trials.failed()):
        raise KeyboardInterrupt  # Tune catches it, and stops in order


def _tuner(study: Study, trials: Trials, budget: Budget, places: int, config: Any) -> Any:
    import optuna
    from ray import tune as ray_tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search.optuna import OptunaSearch

    from verl_jobs.search.tune_trainable import Trial

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    known, training, tuning = trials.points(), study.profile.training, study.profile.tuning
    first = own_point(study.profile)
    points = known or ([first] if first else [])
    # a search that goes on draws anew, or it would draw again what it has drawn
    sampler = optuna.samplers.TPESampler(
        multivariate=True,
        n_startup_trials=min(10, max(4, budget.trials // COUNT_OF_RANDOM)),
        seed=1000 * study.profile.seed + len(known),
    )
    search = OptunaSearch(
        metric="validation", mode="max", sampler=sampler, points_to_evaluate=points or None
    )
    least = min(tuning.first_look or training.save_every, training.steps)
    scheduler = ASHAScheduler(
        time_attr="step",
        metric="validation",
        mode="max",
        max_t=training.steps,
        grace_period=least,
        reduction_factor=tuning.reduction,
    )
    return ray_tune.Tuner(
        Trial,
        param_space=domains(study.profile) | {"study": str(trials.folder)},
        tune_config=ray_tune.TuneConfig(
            num_samples=max(budget.trials, len(known)),
            search_alg=search,
            scheduler=scheduler,
            max_concurrent_trials=places,
            reuse_actors=True,
            time_budget_s=60 * budget.minutes or None,
        ),
        run_config=config,
    )


def _follower(records: Trials, study: Study, console: Console) -> Any:
    """What Tune calls while it runs: keeps each trial's record, and tells of it."""
    from ray import tune as ray_tune

    steps = study.profile.training.steps

    class Follower(ray_tune.Callback):  # type: ignore[misc]  # ray has no types
        def __reduce__(self) -> tuple[Any, ...]:
            return (
                ray_tune.Callback,
                (),
            )  # Tune keeps a copy on disk, where a console cannot be kept

        def on_trial_start(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            number, new = records.begin(_point(trial))
            if new or not records.over(number):
                console.print(
                    f"trial {number}: {records.describe(number)}", highlight=False, soft_wrap=True
                )

        def on_trial_result(
            self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
        ) -> None:
            number = records.number(_point(trial))
            if not records.over(number):
                study.stage.report.progress.at(
                    int(result["step"]),
                    steps,
                    f"trial {number}, validation {result['validation']:.2f}",
                )
                line = (
                    f"  trial {number}: step {result['step']} of {steps}, best validation "
                    f"{100 * result['validation']:.1f} %"
                )
                console.print(line, highlight=False, soft_wrap=True)

        def on_trial_complete(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            if records.end(number := records.number(_point(trial)), int(trial.last_result["step"])):
                console.print(
                    (
                        f"  trial {number}: ended, others were better at step "
                        f"{trial.last_result['step']}"
                    ),
                    highlight=False,
                    soft_wrap=True,
                )

        def on_trial_error(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            number = records.number(_point(trial))
            why = records.fail(number)
            console.print(
                f"  trial {number} failed: {why}", style="red", highlight=False, soft_wrap=True
            )

    return Follower()


def _point(trial: Any) -> dict[str, Any]:
    return {key: value for key, value in trial.config.items() if key != "study"}


def command(study: Study) -> list[str]:
    """Return the trainer's environment. Ray's token in ours belongs to Tune's own Ray; a cluster's
    is restored.
    """
    ray_settings, token = study.profile.ray, os.environ.get("RAY_AUTH_TOKEN_PATH", "")
    cleared = [
        "env",
        "-u",
        "RAY_AUTH_MODE",
        "-u",
        "RAY_AUTH_TOKEN_PATH",
        *([f"RAY_AUTH_TOKEN_PATH={token}"] if token else []),
    ]
    return [
        *cleared,
        sys.executable,
        "-m",
        "experiments.trial_process",
        str(study.home.path / "ray"),
        ray_settings.bind,
        ray_settings.address,
    ]


def at_once(study: Study) -> int:
    """How many trials train at the same time."""
    ray_settings = study.profile.ray
    if study.profile.tuning.at_once or not ray_settings.address:
        return study.profile.tuning.at_once or 1
    from ray.util.state import list_nodes

    gpus = sum(
        node.resources_total.get("GPU", 0)
        for node in list_nodes(address=ray_settings.address, filters=[("state", "=", "ALIVE")])
    )
    return max(1, int(gpus) // study.profile.training.ranks)
