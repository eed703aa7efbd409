"""The training process, a Ray job's entry point.

`python -m verl_jobs.trainer.entry FOLDER/job.json` resumes from the newest complete save, runs
verl's `main_ppo` with our overrides, reports each step through Dagster Pipes, and writes
`done.json` last. A kernel lock keeps two processes from training in one folder; the kernel releases
it when its holder dies.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from dagster_pipes import PipesContext, PipesMappingParamsLoader, open_dagster_pipes

from rewards import watch
from verl_jobs.config.engine_overrides import check_attention
from verl_jobs.config.environment import environment
from verl_jobs.config.overrides import TRACES, overrides
from verl_jobs.job import VALIDATION, TrainingJob, metrics, next_attempt
from verl_jobs.metrics.machines import Machines
from verl_jobs.samples import CUT
from verl_jobs.trainer import progress, trainer_lease
from verl_jobs.trainer.callback import ForeignMirror, fetch
from verl_jobs.trainer.checkpoints import repair, restore_settings
from verl_jobs.trainer.dead_actors import dead_actors, wait_for_dead_actors
from verl_jobs.trainer.layout import check_room, describe, fit_to_cluster
from verl_jobs.trainer.resharding import reshard

REPORT_EVERY_S = 1.0
DEATHS_EVERY_S = 10.0  # interval of the checks for dead actors
# seconds without progress after a death; by then verl has noticed it, or waits forever
QUIET_S = 60.0
# less than the owner waits before it has Ray stop the job (resources/ray/job.py)
TIME_TO_SAVE_S = 45.0
HANGS_S = 900.0  # a training that has not ended this long after the notice is killed
# exit code (EX_TEMPFAIL): a Ray process died, or a notice ended the training; it may resume from
# its last save
DIED = 75
REPORTED = {
    "reward": "critic/rewards/mean",
    "validation": VALIDATION,
    "length": "response_length/mean",
    "cut": CUT,
    "entropy": "actor/entropy",
    "grad_norm": "actor/grad_norm",
    "seconds": "timing_s/step",
    "visible": watch.VISIBLE,
    "hidden": watch.HIDDEN,
    "gap": watch.GAP,
    "denied": watch.DENIED,
    "without_score": watch.LOST,
}


def main(path: Path, owned: bool = False) -> None:
    """Train the job of this file to its end.

    owned: whether another process renews the training's lease. Without an owner there is no lease
    (a run by hand, a KubeRay job).
    """
    job = TrainingJob.read(path)
    with trainer_lease.training_lock(job.path) as locked:
        if not locked:
            sys.exit(f"another process already trains in {job.path}")
        if job.done is None:
            trainer_lease.withdraw_notice(job.path)
            # written by a killed attempt; this attempt checks for itself
            (job.path / "stopped.json").unlink(missing_ok=True)
            if holders := os.environ.get(trainer_lease.HOLDERS):
                # keeps the private Ray alive while an orphaned training saves
                trainer_lease.register_holder(Path(holders))
            with pipes(job.path) as session:
                _train(job, session, owned)
            job.finish()


def pipes(folder: Path) -> AbstractContextManager[PipesContext | None]:
    """Open the Dagster Pipes session whose parameters the submitting step left in the folder.

    Yields None for a run by hand.
    """
    params = folder / "pipes.json"
    if not params.exists():
        return nullcontext()
    return open_dagster_pipes(
        params_loader=PipesMappingParamsLoader(json.loads(params.read_text(encoding="utf-8")))
    )


def _train(job: TrainingJob, session: PipesContext | None, owned: bool) -> None:
    check_attention(job.training)
    os.environ.update(environment(job.training))
    progress.begin(job.path, "download of saves" if job.mirror else "start")
    watch = progress.ProgressWatch(job.path, job.training.stall_s)
    threading.Thread(target=end_if_stuck, args=(watch,), daemon=True, name="watch").start()
    try:
        fetch(job)
    except ForeignMirror as error:
        sys.exit(f"error: {error}")
    resumed = repair(job.path)
    if session:
        session.log.info(
            f"training {job.run_id}: "
            f"{'from step ' + str(resumed) if resumed else 'from the start'}, "
            f"{job.training.steps} steps"
        )
    progress.begin(job.path, "start")
    import ray

    if not ray.is_initialized():
        # the job's environment has the address; no runtime_env, because Ray's workers are preloaded
        ray.init(log_to_driver=True)
    from verl.trainer import main_ppo

    training = restore_settings(job, resumed).training
    if resumed or next_attempt(job.path) > 1:
        training = fit_to_cluster(training, job.path)
    else:
        check_room(training, job.path)
    if resumed and reshard(job.path / "saves" / f"global_step_{resumed}", training.ranks):
        print(f"converted the save of step {resumed} for {describe(training)}", flush=True)
    loggers = [name for name in job.loggers if name != "mlflow" or job.tracking_uri]
    reporter = Reporter(job, session, owned, watch)
    # replaces Ray's handler, set by init, which would lose everything since the last save
    signal.signal(signal.SIGTERM, lambda *_: reporter.on_sigterm())
    lines = overrides(
        training,
        seed=job.seed,
        model=Path(job.start),
        train=Path(job.train),
        validation=Path(job.validation),
        folder=job.path,
        loggers=loggers,
        name=job.run_id,
    )
    if job.training.trace:
        (job.path / TRACES).mkdir(exist_ok=True)
    sys.argv = ["main_ppo", *lines, f"hydra.run.dir='{job.path / 'hydra'}'"]
    progress.begin(job.path, "start of verl")
    reporter.start()
    try:
        main_ppo.main()
    except (
        ray.exceptions.RayActorError,
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.NodeDiedError,
    ) as error:
        print(f"a process of the run died: {str(error).splitlines()[0]}", flush=True)
        if training.scale.nodes > 1:
            # the next attempt must not be placed on a node that Ray still believes alive
            wait_for_dead_actors()
        sys.exit(DIED)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error, trainer_lease.TrainingEnded):
            print(f"saved and ended: {trainer_lease.notice(job.path)}", flush=True)
            sys.exit(DIED)
        if not job.stopped:
            if (
                dead := wait_for_dead_actors()
            ):  # verl's exception is only a consequence of the death
                print(f"a process of the run died: {', '.join(dead)}", flush=True)
                sys.exit(DIED)
            raise
        print(f"stopped early: {job.stopped}", flush=True)
    finally:
        reporter.stop()


def end_if_stuck(watch: progress.ProgressWatch) -> None:
    """End this process if the training makes no progress.

    In a thread of its own: a question to Ray may itself wait for ever.
    """
    while watch.look() <= watch.limit:
        time.sleep(REPORT_EVERY_S)
    _end(progress.fault(watch.quiet, watch.phase, progress.ray_above()))


def _end(reason: str) -> None:
    """End this process, and with it the training; its owner resumes it from the last save."""
    print(f"error: {reason}", flush=True)
    os._exit(DIED)


class Reporter(threading.Thread):
    """Thread that reports each step and watches over the training.

    Follows verl's metrics file and reports each step once through Dagster Pipes. Gives notice when
    the training's lease has expired. Ends the process if one of its Ray processes died and verl
    waits for it.
    """

    def __init__(
        self,
        job: TrainingJob,
        session: PipesContext | None,
        owned: bool,
        watch: progress.ProgressWatch,
    ) -> None:
        super().__init__(daemon=True)
        self.job, self.session = job, session
        self.reported: dict[int, dict[str, float]] = {}
        self.lease, self.notice_at = trainer_lease.Lease(job.path) if owned else None, 0.0
        self.watch, self.looked_at = watch, time.monotonic()
        self.missed_at = 0.0  # when a death was first seen
        self.ended = threading.Event()
        self.machines = Machines()  # CPU load is measured from here on

    def run(self) -> None:
        last_errors: dict[str, str] = {}
        while not self.ended.wait(REPORT_EVERY_S):
            for check in (self._check_lease, self._check_actors, self.report):
                try:
                    check()
                except Exception as error:
                    # e.g. a full disk or an unresponsive Ray: the next check may succeed, and
                    # nothing else checks
                    if last_errors.get(check.__name__) != (
                        error_text := f"{type(error).__name__}: {error}"
                    ):
                        last_errors[check.__name__] = error_text
                        print(
                            (
                                f"{check.__name__.strip('_')} failed, retry in "
                                f"{REPORT_EVERY_S:.0f} s: {error_text}"
                            ),
                            flush=True,
                        )

    def _check_lease(self) -> None:
        if self.lease and self.lease.expired():
            trainer_lease.give_notice(
                self.job.path, f"its lease was not renewed for {self.lease.term_s:.0f} s"
            )
        if trainer_lease.notice(self.job.path):
            self.notice_at = self.notice_at or time.monotonic()
            if time.monotonic() - self.notice_at > HANGS_S:
                os._exit(DIED)  # ends its child processes too

    def on_sigterm(self) -> None:
        """Handle SIGTERM: give notice, or exit if an earlier notice left enough time to save.

        Ray sends SIGTERM last, when it stops the job.
        """
        if self.notice_at and time.monotonic() - self.notice_at > TIME_TO_SAVE_S:
            os._exit(DIED)
        trainer_lease.give_notice(self.job.path, "SIGTERM")

    def _check_actors(self) -> None:
        now = time.monotonic()
        if now - self.looked_at < DEATHS_EVERY_S:
            return
        self.looked_at, dead = now, dead_actors()
        self.missed_at = (self.missed_at or now) if dead else 0.0
        if dead and min(now - self.missed_at, self.watch.quiet) > QUIET_S:
            _end(f"a process of the run died, and verl waits for it: {', '.join(dead)}")

    def stop(self) -> None:
        self.ended.set()
        self.join()
        self.report()

    def report(self) -> None:
        history = metrics(self.job.path)
        figures = {
            record["step"]: {
                name: float(record[key]) for name, key in REPORTED.items() if key in record
            }
            for record in history
        }
        for step, values in figures.items():
            if self.reported.get(step) != values:
                if self.session:
                    # the load during earlier steps, reported by another attempt, is unknown
                    loads = self.machines.loads() if step == max(figures) else {}
                    self.session.report_custom_message(
                        {"step": step, "time": time.time(), **values, **loads}
                    )
                self.reported[step] = values


if __name__ == "__main__":
    main(Path(sys.argv[1]), trainer_lease.OWNED in sys.argv[2:])
