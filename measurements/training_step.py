"""What our entry adds to a training step: the same job through `verl_jobs.trainer.entry` and
through bare `verl.trainer.main_ppo`, in turn.

    python -m measurements.training_step CHAIN_FOLDER [--steps 6] [--rounds 2]

CHAIN_FOLDER: `$RATCHET_HOME/runs/<chain>` of a finished chain; its job is done again from its start
policy, in a scratch folder. Bare means: the same overrides less our checkpoint callback and the W&B
and MLflow loggers, started by a script that does nothing but start it. Both run on a private Ray of
the same kind, and write the same answers: step k is compared with step k. Prints the median seconds
of each step over the rounds (the first and the last are left out: one warms up, the other saves)
and the ratio of their sums.
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
    parser.add_argument("chain", type=Path)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    [told] = arguments.chain.glob("training/*/job.json")
    scratch = Path(tempfile.mkdtemp(prefix="ratchet-step-"))
    seconds: dict[str, list[list[float]]] = {"ours": [], "bare": []}
    for number in range(arguments.rounds):
        order = [("ours", ours), ("bare", bare)]
        for kind, run in (
            order if number % 2 == 0 else reversed(order)
        ):  # so that a machine that slows down does so for both
            folder = scratch / f"{kind}-{number}"
            folder.mkdir(parents=True)
            job = TrainingJob.read(told)
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
    for step, (mine, theirs) in enumerate(
        zip(medians["ours"], medians["bare"], strict=True), start=2
    ):
        print(f"| {step} | {mine:.2f} | {theirs:.2f} | {mine / theirs:.3f} |")
    mine, theirs = sum(medians["ours"]), sum(medians["bare"])
    print(f"| all | {mine:.2f} | {theirs:.2f} | {mine / theirs:.3f} |")
    shutil.rmtree(scratch)


def ours(job: TrainingJob, ray_folder: Path) -> list[float]:
    train(job, Private(ray_folder, job))
    return step_seconds(metrics(job.path))


def bare(job: TrainingJob, ray_folder: Path) -> list[float]:
    head = ensure_head(ray_folder, job)
    from ray.job_submission import JobSubmissionClient

    left_out = ("trainer.checkpoint_callback_class", "trainer.logger")
    given = overrides(
        job.training,
        seed=job.seed,
        model=Path(job.start),
        train=Path(job.train),
        validation=Path(job.validation),
        folder=job.path,
        loggers=[],
        name="bare",
    )
    given = [each for each in given if not each.startswith(left_out)] + [
        "trainer.logger=[file]",
        f"hydra.run.dir='{job.path / 'hydra'}'",
    ]
    script, metrics_file = job.path / "bare.py", job.path / "metrics-001.jsonl"
    script.write_text(BARE)
    client = JobSubmissionClient(head.dashboard)
    name = client.submit_job(
        entrypoint=(
            f"exec {shlex.join([sys.executable, str(script), str(metrics_file), *given])} > "
            f"{job.path / 'log'} 2>&1"
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
    """Seconds a step, the first and the last left out: one warms up, the other saves."""
    return [record["timing_s/step"] for record in history if "timing_s/step" in record][1:-1]


if __name__ == "__main__":
    main()
