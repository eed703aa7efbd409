"""Overhead of Ratchet's entry point per training step, against bare `verl.trainer.main_ppo`.

    python -m measurements.training_step RUN_FOLDER [--steps 6] [--rounds 2]

RUN_FOLDER: `$RATCHET_HOME/runs/<id>` of a finished pipeline run, whose job is repeated from its
start policy in a temporary folder. Bare: the same overrides without Ratchet's checkpoint callback
and the W&B and MLflow loggers. Both run on a private Ray and generate the same completions, so step
k is compared with step k. Prints the median seconds of each step over the rounds and the ratio of
their sums. The first step, which warms up, and the last, which saves, are left out.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from resources.ray.job import train
from resources.ray.private import Private, ensure_head
from verl_jobs.config.overrides import overrides
from verl_jobs.job import TrainingJob, metrics

BARE = """
import os, sys
os.environ["VERL_FILE_LOGGER_PATH"] = sys.argv.pop(1)
import ray
ray.init(runtime_env={"env_vars": {"VERL_FILE_LOGGER_PATH": os.environ["VERL_FILE_LOGGER_PATH"]}})
from verl.trainer import main_ppo
main_ppo.main()
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    [job_file] = arguments.run_folder.glob("training/*/job.json")
    scratch = Path(tempfile.mkdtemp(prefix="ratchet-step-"))
    seconds: dict[str, list[list[float]]] = {"ours": [], "bare": []}
    for number in range(arguments.rounds):
        order = [("ours", ours), ("bare", bare)]
        # The order alternates, so that a machine that slows down affects both.
        for kind, run in order if number % 2 == 0 else reversed(order):
            folder = scratch / f"{kind}-{number}"
            folder.mkdir(parents=True)
            job = TrainingJob.read(job_file)
            training = job.training.model_copy(
                update={"steps": arguments.steps, "save_every": arguments.steps}
            )
            job = job.model_copy(update={"folder": str(folder), "training": training})
            job.write()
            steps = run(job, scratch / "ray")
            seconds[kind].append(steps)
            print(f"{kind}: {' '.join(f'{step:.2f}' for step in steps)}", flush=True)
    medians = {
        kind: [statistics.median(step) for step in zip(*runs, strict=True)]
        for kind, runs in seconds.items()
    }
    print(
        "\n| step | verl_jobs.trainer.entry, s | bare verl.trainer.main_ppo, s | ratio |\n"
        "|---|---|---|---|"
    )
    for step, (ours_s, bare_s) in enumerate(
        zip(medians["ours"], medians["bare"], strict=True), start=2
    ):
        print(f"| {step} | {ours_s:.2f} | {bare_s:.2f} | {ours_s / bare_s:.3f} |")
    ours_s, bare_s = sum(medians["ours"]), sum(medians["bare"])
    print(f"| all | {ours_s:.2f} | {bare_s:.2f} | {ours_s / bare_s:.3f} |")
    shutil.rmtree(scratch)


def ours(job: TrainingJob, ray_folder: Path) -> list[float]:
    """Train with Ratchet's entry point. Return the seconds of each step."""
    train(job, Private(ray_folder, job))
    return step_seconds(metrics(job.path))


def bare(job: TrainingJob, ray_folder: Path) -> list[float]:
    """Train with verl's own entry point. Return the seconds of each step."""
    head = ensure_head(ray_folder, job)
    from ray.job_submission import JobSubmissionClient

    left_out = ("trainer.checkpoint_callback_class", "trainer.logger")
    job_overrides = overrides(
        job.training,
        seed=job.seed,
        model=Path(job.start),
        train=Path(job.train),
        validation=Path(job.validation),
        folder=job.path,
        loggers=[],
        name="bare",
    )
    job_overrides = [each for each in job_overrides if not each.startswith(left_out)] + [
        "trainer.logger=[file]",
        f"hydra.run.dir='{job.path / 'hydra'}'",
    ]
    script, metrics_file = job.path / "bare.py", job.path / "metrics-001.jsonl"
    script.write_text(BARE)
    client = JobSubmissionClient(head.dashboard)
    name = client.submit_job(
        entrypoint=(
            f"exec {shlex.join([sys.executable, str(script), str(metrics_file), *job_overrides])} "
            f"> {job.path / 'log'} 2>&1"
        ),
        entrypoint_num_cpus=0,
    )
    while not (status := client.get_job_status(name)).is_terminal():
        time.sleep(0.5)
    if status.value != "SUCCEEDED":
        raise RuntimeError((job.path / "log").read_text()[-2000:])
    return step_seconds(
        [
            json.loads(line) | json.loads(line)["data"]
            for line in metrics_file.read_text().splitlines()
        ]
    )


def step_seconds(history: list[dict]) -> list[float]:  # type: ignore[type-arg]
    """Return seconds per step, without the first (it warms up) and the last (it saves)."""
    return [record["timing_s/step"] for record in history if "timing_s/step" in record][1:-1]


if __name__ == "__main__":
    main()
