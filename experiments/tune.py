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

from artifacts.hashing import hash_data
from artifacts.store import write_atomic
from experiments.search_space import checked, domains, left_out, own_point, space_of
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
    checked(profile)
    if less := left_out(profile):
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


def trials_of(made: Study) -> Trials:
    """Return the existing trials of this space over this training; another space or training is
    another search.
    """
    base = made.job(1000 * made.profile.seed + 1)
    space = {key: span.model_dump() for key, span in space_of(made.profile).items()}
    key = hash_data(
        {
            "space": space,
            "training": base.training.model_dump(mode="json"),
            "inputs": base.inputs,
            "reward": base.reward_hash,
        }
    )
    return Trials(made.stage.pipeline_run.folder / "tuning" / key[:10], base)


def search(
    made: Study, told: Trials, trainer: Sequence[str], budget: Budget, console: Console
) -> None:
    """Runs Ray Tune until the budget is spent. Raises KeyboardInterrupt where a person ended it.

    trainer: the command that trains a trial (verl_jobs/search/tune_trainable.py). console: one with
       its own file, because what Tune prints goes to a log.
    """
    os.environ |= ENVIRONMENT
    places = at_once(made)
    write_atomic(told.command, json.dumps(list(trainer)))
    console.print(
        f"{made.id}: {len(told.ended())} of {budget.trials} trials there, {places} at a time",
        highlight=False,
        soft_wrap=True,
    )
    began = time.monotonic()
    with (told.folder / "tune.log").open("a") as log:
        head = light_head(told.folder / "ray", places + 1)
        import ray
        from ray import tune as ray_tune

        # Tune's own tables and warnings, of which ours are the short form
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            ray.init(address=head.address, log_to_driver=False, logging_level="error")
            try:
                followed = _follower(told, made, console)
                config = ray_tune.RunConfig(
                    name="last",
                    storage_path=str(told.folder / "tune"),
                    verbose=0,
                    callbacks=[followed],
                )
                _tuner(made, told, budget, places, config).fit()
            finally:
                ray.shutdown()
    in_time = not budget.minutes or time.monotonic() - began < 60 * budget.minutes
    if in_time and set(told.records()) - set(told.ended()) - set(told.failed()):
        raise KeyboardInterrupt  # Tune catches it, and stops in order


def _tuner(made: Study, told: Trials, budget: Budget, places: int, config: Any) -> Any:
    import optuna
    from ray import tune as ray_tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search.optuna import OptunaSearch

    from verl_jobs.search.tune_trainable import Trial

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    known, training, wanted = told.points(), made.profile.training, made.profile.tuning
    first = own_point(made.profile)
    points = known or ([first] if first else [])
    # a search that goes on draws anew, or it would draw again what it has drawn
    sampler = optuna.samplers.TPESampler(
        multivariate=True,
        n_startup_trials=min(10, max(4, budget.trials // COUNT_OF_RANDOM)),
        seed=1000 * made.profile.seed + len(known),
    )
    search = OptunaSearch(
        metric="validation", mode="max", sampler=sampler, points_to_evaluate=points or None
    )
    least = min(wanted.first_look or training.save_every, training.steps)
    scheduler = ASHAScheduler(
        time_attr="step",
        metric="validation",
        mode="max",
        max_t=training.steps,
        grace_period=least,
        reduction_factor=wanted.reduction,
    )
    return ray_tune.Tuner(
        Trial,
        param_space=domains(made.profile) | {"study": str(told.folder)},
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


def _follower(told: Trials, made: Study, console: Console) -> Any:
    """What Tune calls while it runs: keeps each trial's record, and tells of it."""
    from ray import tune as ray_tune

    steps = made.profile.training.steps

    class Follower(ray_tune.Callback):  # type: ignore[misc]  # ray has no types
        def __reduce__(self) -> tuple[Any, ...]:
            return (
                ray_tune.Callback,
                (),
            )  # Tune keeps a copy on disk, where a console cannot be kept

        def on_trial_start(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            number, new = told.begin(_point(trial))
            if new or not told.over(number):
                console.print(
                    f"trial {number}: {told.said(number)}", highlight=False, soft_wrap=True
                )

        def on_trial_result(
            self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
        ) -> None:
            number = told.number(_point(trial))
            if not told.over(number):
                made.stage.report.progress.at(
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
            if told.end(number := told.number(_point(trial)), int(trial.last_result["step"])):
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
            number = told.number(_point(trial))
            why = told.fail(number)
            console.print(
                f"  trial {number} failed: {why}", style="red", highlight=False, soft_wrap=True
            )

    return Follower()


def _point(trial: Any) -> dict[str, Any]:
    return {key: value for key, value in trial.config.items() if key != "study"}


def command(made: Study) -> list[str]:
    """Return the trainer's environment. Ray's token in ours belongs to Tune's own Ray; a cluster's
    is restored.
    """
    asked, token = made.profile.ray, os.environ.get("RAY_AUTH_TOKEN_PATH", "")
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
        str(made.home.path / "ray"),
        asked.bind,
        asked.address,
    ]


def at_once(made: Study) -> int:
    """How many trials train at the same time."""
    asked = made.profile.ray
    if made.profile.tuning.at_once or not asked.address:
        return made.profile.tuning.at_once or 1
    from ray.util.state import list_nodes

    gpus = sum(
        node.resources_total.get("GPU", 0)
        for node in list_nodes(address=asked.address, filters=[("state", "=", "ALIVE")])
    )
    return max(1, int(gpus) // made.profile.training.ranks)
