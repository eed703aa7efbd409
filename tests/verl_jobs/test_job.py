"""A training job on disk: its key, its file and the metrics of its attempts."""

import json
import re
import shutil
from pathlib import Path

import pytest

from artifacts.integrity import CorruptArtifact
from rewards.config import RewardConfig
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, metrics, next_attempt


def a_job(folder: Path, **changes: object) -> TrainingJob:
    values = {
        "folder": str(folder),
        "run_id": "chain-0001",
        "start": "start",
        "train": "train.parquet",
        "validation": "validation.parquet",
        "inputs": {"start": "a", "train": "b"},
        "training": Training(),
        "reward": RewardConfig(),
        "reward_hash": "c",
        "isolation": "auto",
        "seed": 1,
    }
    return TrainingJob.model_validate(values | changes)


def test_the_key_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    assert a_job(tmp_path / "a").key == a_job(tmp_path / "b").key
    assert a_job(tmp_path).key != a_job(tmp_path, seed=2).key
    assert a_job(tmp_path).key != a_job(tmp_path, training=Training(learning_rate=1e-4)).key


def test_a_job_survives_a_round_trip_through_json(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert TrainingJob.read(job.write()) == job


def test_changed_files_of_a_finished_training_are_named(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    job.write()
    (tmp_path / "metrics-001.jsonl").write_text('{"step": 1, "data": {"reward": 0.1}}\n')
    job.finish()
    assert job.done
    assert job.done["steps"] == job.training.steps
    for name in ("job.json", "metrics-001.jsonl", "done.json"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text.replace("1", "2", 1))
        with pytest.raises(CorruptArtifact, match=re.escape(name)):
            assert TrainingJob.read(tmp_path / "job.json").done
        (tmp_path / name).write_text(text)


def test_a_later_attempt_replaces_repeated_steps(tmp_path: Path) -> None:
    first = [{"step": step, "data": {"reward": 0.1 * step}} for step in (1, 2, 3)]
    second = [{"step": 2, "data": {"reward": 9.0}}, {"step": 3, "data": {"reward": 8.0}}]
    (tmp_path / "metrics-001.jsonl").write_text(
        "\n".join(map(json.dumps, first)) + '\n{"step": 4, "da'
    )
    (tmp_path / "metrics-002.jsonl").write_text("\n".join(map(json.dumps, second)) + "\n")
    assert [(record["step"], record["reward"]) for record in metrics(tmp_path)] == [
        (1, 0.1),
        (2, 9.0),
        (3, 8.0),
    ]
    assert next_attempt(tmp_path) == 3


def test_steps_after_the_last_checkpoint_are_refused() -> None:
    with pytest.raises(ValueError, match=r"save_every \(10\), got 25"):
        Training(steps=25, save_every=10)


def test_cached_metrics_include_steps_written_later(
    tmp_path: Path,
) -> None:
    file = tmp_path / "metrics-001.jsonl"
    for step in range(1, 4):
        with file.open("a") as out:
            out.write(json.dumps({"step": step, "data": {"a": step}}) + "\n")
        assert [row["step"] for row in metrics(tmp_path)] == list(range(1, step + 1))
    (tmp_path / "metrics-002.jsonl").write_text(json.dumps({"step": 3, "data": {"a": 30}}) + "\n")
    assert metrics(tmp_path)[-1]["a"] == 30


def test_a_copied_home_trains_with_its_own_files(tmp_path: Path) -> None:
    old, new, name = tmp_path / "old", tmp_path / "new", "runs/chain-0001/training/abc"
    (old / name).mkdir(parents=True)
    start, train = old / "checkpoints" / "one", old / name / "train.parquet"
    job = a_job(
        old / name, start=str(start), train=str(train), validation="/elsewhere/rows.parquet"
    )
    job.write()
    assert TrainingJob.read(old / name / "job.json") == job
    shutil.copytree(old, new)
    copied = TrainingJob.read(new / name / "job.json")
    assert (copied.folder, copied.start) == (str(new / name), str(new / "checkpoints" / "one"))
    assert copied.train == str(new / name / "train.parquet")
    assert copied.validation == job.validation
    assert copied.key == job.key
