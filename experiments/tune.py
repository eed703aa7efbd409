"""`ratchet tune`: search training settings with Optuna; Ray Tune's ASHA stops bad trials early.

The state of a search is its trials' folders. A repeated command passes the recorded trials, with
their results, to the searcher in their original order, and the search resumes. A kill therefore
loses at most the steps since a training's last checkpoint, and more trials can be added later.
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
from experiments.study import Study, StudyResult, run_study
from experiments.trials import Trials, report, show
from resources.config.load import layers
from resources.ray.private import light_head
from resources.settings import Settings

# The first third of the trials, at least 4 and at most 10, is sampled at random; the others come
# from TPE's model of the results.
TRIALS_PER_RANDOM_TRIAL = 3
ENVIRONMENT = {  # Ray reads it when it is imported
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    # Otherwise Tune connects to an external address of this machine, but the private Ray listens
    # on the loopback interface only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


@dataclass(frozen=True)
class Budget:
    """When a search ends: after this many trials, or after this many minutes (0: no limit)."""

    trials: int
    minutes: float


def tune(settings: Settings, trials: int | None, minutes: float | None, console: Console) -> int:
    """Search until `trials` have ended or the minutes are over, and print the table.

    None: the profile's value. Returns exit code 0, 1 if a trial failed, 130 if interrupted.
    """
    profile = settings.profile
    check_search_space(profile, layers(settings.profile_name, settings.changes))
    if excluded := excluded_keys(profile):
        console.print(f"{excluded}.", highlight=False, soft_wrap=True)
    limit = profile.tuning.minutes if minutes is None else minutes
    budget = Budget(trials or profile.tuning.trials, limit)

    def measure(study: Study) -> StudyResult:
        history = trials_of(study)
        if len(history.ended()) < budget.trials:
            search(study, history, trainer_command(study), budget, console)
        remaining = budget.trials - len(history.ended())
        show(history, report(history, study), study, console)
        if remaining:
            console.print(
                f"{remaining} of {budget.trials} trials remain: the same command resumes.",
                highlight=False,
            )
        return StudyResult(len(history.failed()), remaining)

    return run_study(settings, f"ratchet tune --trials {budget.trials}", console, measure)


def trials_of(study: Study) -> Trials:
    """Return the recorded trials of this study's search.

    A search is identified by its space, its training settings, inputs and reward.
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
    """Run Ray Tune until the budget is used up. Raises KeyboardInterrupt if the user interrupts it.

    trainer: the command that trains a trial (verl_jobs/search/tune_trainable.py).
    console: must write to its own file, because stdout and stderr are redirected to a log.
    """
    os.environ |= ENVIRONMENT
    concurrency = concurrent_trials(study)
    write_atomic(trials.command, json.dumps(list(trainer)))
    console.print(
        f"{study.id}: {len(trials.ended())} of {budget.trials} trials done, {concurrency} at a "
        "time",
        highlight=False,
        soft_wrap=True,
    )
    began = time.monotonic()
    with (trials.folder / "tune.log").open("a") as log:
        head = light_head(trials.folder / "ray", study.stage.pipeline_run.folder, concurrency + 1)
        import ray
        from ray import tune as ray_tune

        # Tune's own tables and warnings go to the log.
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            ray.init(address=head.address, log_to_driver=False, logging_level="error")
            try:
                config = ray_tune.RunConfig(
                    name="last",
                    storage_path=str(trials.folder / "tune"),
                    verbose=0,
                    callbacks=[_callback(trials, study, console)],
                )
                _tuner(study, trials, budget, concurrency, config).fit()
            finally:
                ray.shutdown()
    in_time = not budget.minutes or time.monotonic() - began < 60 * budget.minutes
    if in_time and set(trials.records()) - set(trials.ended()) - set(trials.failed()):
        raise KeyboardInterrupt  # Tune catches the user's interrupt and ends without an error


def _tuner(study: Study, trials: Trials, budget: Budget, concurrency: int, config: Any) -> Any:
    import optuna
    from ray import tune as ray_tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search.optuna import OptunaSearch

    from verl_jobs.search.tune_trainable import Trial

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    recorded, training, tuning = trials.points(), study.profile.training, study.profile.tuning
    first = own_point(study.profile)
    points = recorded or ([first] if first else [])
    # A resumed search needs another seed, or it would sample the recorded points again.
    sampler = optuna.samplers.TPESampler(
        multivariate=True,
        n_startup_trials=min(10, max(4, budget.trials // TRIALS_PER_RANDOM_TRIAL)),
        seed=1000 * study.profile.seed + len(recorded),
    )
    search = OptunaSearch(
        metric="validation", mode="max", sampler=sampler, points_to_evaluate=points or None
    )
    grace_period = min(tuning.first_look or training.save_every, training.steps)
    scheduler = ASHAScheduler(
        time_attr="step",
        metric="validation",
        mode="max",
        max_t=training.steps,
        grace_period=grace_period,
        reduction_factor=tuning.reduction,
    )
    return ray_tune.Tuner(
        Trial,
        param_space=domains(study.profile) | {"study": str(trials.folder)},
        tune_config=ray_tune.TuneConfig(
            num_samples=max(budget.trials, len(recorded)),
            search_alg=search,
            scheduler=scheduler,
            max_concurrent_trials=concurrency,
            reuse_actors=True,
            time_budget_s=60 * budget.minutes or None,
        ),
        run_config=config,
    )


def _callback(records: Trials, study: Study, console: Console) -> Any:
    """Return a Ray Tune callback that records each trial and prints its progress."""
    from ray import tune as ray_tune

    steps = study.profile.training.steps

    class RecordTrials(ray_tune.Callback):  # type: ignore[misc]  # ray has no types
        def __reduce__(self) -> tuple[Any, ...]:
            # Tune pickles its callbacks to disk, and a console cannot be pickled.
            return ray_tune.Callback, ()

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
                        f"  trial {number}: stopped early, others were better at step "
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

    return RecordTrials()


def _point(trial: Any) -> dict[str, Any]:
    return {key: value for key, value in trial.config.items() if key != "study"}


def trainer_command(study: Study) -> list[str]:
    """Return the command that trains a trial.

    Ray's variables of the process that calls it belong to Tune's private Ray and are cleared. The
    token of the profile's cluster is set again.
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
