"""The training process: `python -m verl_jobs.entry FOLDER/job.json`, a Ray job's entry point.

Goes on from the newest whole save, runs verl's own `main_ppo` with our overrides, reports each step through Dagster Pipes, writes `done.json` last.
Two processes never train in one folder: the kernel's lock decides, and gives the folder free when its holder dies.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from dagster_pipes import PipesContext, PipesMappingParamsLoader, open_dagster_pipes

from artifacts.store import write_atomic
from rewards import watch
from verl_jobs.job import VALIDATION, TrainingJob, candidates, metrics
from verl_jobs.overrides import environment, overrides
from verl_jobs.saving import repair

REPORT_EVERY_S = 1.0
DIED = 75  # exit code (EX_TEMPFAIL): a Ray process died under the training, which may go on from its last save
REPORTED = {
    "reward": "critic/rewards/mean",
    "validation": VALIDATION,
    "length": "response_length/mean",
    "cut": "response_length/clip_ratio",
    "entropy": "actor/entropy",
    "grad_norm": "actor/grad_norm",
    "seconds": "timing_s/step",
    "visible": watch.VISIBLE,
    "hidden": watch.HIDDEN,
    "gap": watch.GAP,
    "denied": watch.DENIED,
    "without_score": watch.LOST,
}


def main(path: Path) -> None:
    job = TrainingJob.read(path)
    with (job.path / "trainer.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another process trains in {job.path}: this one ends")
        if job.done is None:
            with pipes(job.path) as session:
                _train(job, session)
            done = {"steps": job.training.steps, "candidates": sorted(candidates(job.path)), "stopped": job.stopped}
            write_atomic(job.path / "done.json", json.dumps(done))


def pipes(folder: Path) -> AbstractContextManager[PipesContext | None]:
    """The Dagster Pipes session whose parameters the submitting step left in the folder; none for a run by hand."""
    params = folder / "pipes.json"
    if not params.exists():
        return nullcontext()
    return open_dagster_pipes(params_loader=PipesMappingParamsLoader(json.loads(params.read_text(encoding="utf-8"))))


def _train(job: TrainingJob, session: PipesContext | None) -> None:
    os.environ.update(environment(job.training, job.path))
    resumed = repair(job.path / "saves")
    if session:
        session.log.info(f"training {job.chain}: {'from step ' + str(resumed) if resumed else 'from the start'}, {job.training.steps} steps")
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=True)  # the address comes from the job's environment; no runtime_env: its workers are preloaded
    from verl.trainer import main_ppo

    loggers = [*(["mlflow"] if job.tracking_uri else []), "wandb"]
    told = overrides(
        job.training,
        seed=job.seed,
        model=Path(job.start),
        train=Path(job.train),
        validation=Path(job.validation),
        folder=job.path,
        loggers=loggers,
        name=job.chain,
    )
    sys.argv = ["main_ppo", *told, f"hydra.run.dir='{job.path / 'hydra'}'"]
    reporter = Reporter(job, session)
    reporter.start()
    try:
        main_ppo.main()
    except (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
        print(f"a process of the run died: {str(error).splitlines()[0]}", flush=True)
        sys.exit(DIED)
    except ray.exceptions.RayTaskError:
        if not job.stopped:
            raise
        print(f"stopped early: {job.stopped}", flush=True)
    finally:
        reporter.stop()


class Reporter(threading.Thread):
    """Follows verl's metrics file and tells each step once through Dagster Pipes."""

    def __init__(self, job: TrainingJob, session: PipesContext | None) -> None:
        super().__init__(daemon=True)
        self.job, self.session = job, session
        self.told: dict[int, dict[str, float]] = {}
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(REPORT_EVERY_S):
            self.report()

    def stop(self) -> None:
        self.ended.set()
        self.join()
        self.report()

    def report(self) -> None:
        for record in metrics(self.job.path):
            said = {name: float(record[key]) for name, key in REPORTED.items() if key in record}
            if self.session and self.told.get(record["step"]) != said:
                self.session.report_custom_message({"step": record["step"], "time": time.time(), **said})
            self.told[record["step"]] = said


if __name__ == "__main__":
    main(Path(sys.argv[1]))
