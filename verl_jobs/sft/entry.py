"""The supervised training process, a Ray job's entry point.

`python -m verl_jobs.sft.entry FOLDER/job.json` runs verl's SFT trainer on the Ray that trains: the
workers are Ray actors on the ranks' GPUs. Beside `job.json` are `warm_up.json`, the settings, and
`records.parquet`, the chats. It resumes from verl's newest save, and leaves the weights in
`candidate/` and `done.json` last.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from artifacts.atomic import write_atomic
from verl_jobs import single_entry
from verl_jobs.adapter.versions import patches
from verl_jobs.config.engine_overrides import check_attention
from verl_jobs.config.environment import environment
from verl_jobs.config.lora import merge_folder
from verl_jobs.job import TrainingJob, metrics, next_attempt
from verl_jobs.sft.verl_overrides import sft_overrides
from verl_jobs.sft.warm_up import Prompt, WarmUp
from verl_jobs.trainer import progress, trainer_lease
from verl_jobs.trainer.entry import DIED

SETTINGS, RECORDS, WEIGHTS = "warm_up.json", "records.parquet", "candidate"
LOSS = "train/loss"  # verl's metric


def write_inputs(job: TrainingJob, config: WarmUp, chats: Sequence[tuple[Prompt, str]]) -> None:
    """Write the settings and the chats (user message, or messages so far; assistant message).

    Raises ValueError for settings that verl's trainer does not have.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sft_overrides(job, config, job.path / RECORDS, len(chats))
    rows = [
        [
            *([{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt),
            {"role": "assistant", "content": completion},
        ]
        for prompt, completion in chats
    ]
    job.path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"messages": rows}), job.path / RECORDS)
    write_atomic(job.path / SETTINGS, config.model_dump_json(indent=1))


def losses(job: TrainingJob) -> list[float]:
    """Return the loss of each step, over all attempts."""
    return [float(row[LOSS]) for row in metrics(job.path) if LOSS in row]


def main(path: Path, owned: bool = False) -> None:
    """Train the job of this file to its end. owned: whether a process renews its lease."""
    single_entry.run(path, owned, _train)


def _train(job: TrainingJob) -> None:
    import pyarrow.parquet as pq

    check_attention(job.training)
    config = WarmUp.model_validate_json((job.path / SETTINGS).read_text(encoding="utf-8"))
    log = job.path / f"metrics-{next_attempt(job.path):03d}.jsonl"
    os.environ.update(environment(job.training) | {"VERL_FILE_LOGGER_PATH": str(log)})
    records = job.path / RECORDS
    lines = sft_overrides(job, config, records, pq.read_metadata(records).num_rows)
    progress.begin(job.path, "supervised training")
    sys.argv = ["sft_trainer_ray", *lines, f"hydra.run.dir='{job.path / 'hydra'}'"]
    import ray
    from verl.trainer import sft_trainer_ray

    patches().one_process_a_gpu()
    try:
        sft_trainer_ray.main()
    except (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError) as error:
        print(f"a process of the run died: {str(error).splitlines()[0]}", flush=True)
        sys.exit(DIED)
    weights = job.path / "saves" / f"global_step_{config.steps}" / "huggingface"
    if config.lora:
        merge_folder(weights, config.lora)
    weights.rename(job.path / WEIGHTS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), trainer_lease.OWNED in sys.argv[2:])
