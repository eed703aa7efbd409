"""A training run on disk: what survives a kill, and what a later attempt replaces."""

import json
from pathlib import Path

import pytest

from rewards.composite import RewardConfig
from verl_jobs.config import Training
from verl_jobs.job import TrainingJob, candidates, metrics, next_attempt
from verl_jobs.saving import MARKER, TRACKER, best, prune, publish_candidate, repair, whole_saves


def a_job(folder: Path, **changes: object) -> TrainingJob:
    told = {
        "folder": str(folder),
        "chain": "chain-0001",
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
    return TrainingJob.model_validate(told | changes)


def a_save(saves: Path, step: int, *, whole: bool = True) -> Path:
    folder = saves / f"global_step_{step}" / "actor" / "huggingface"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes([step]))
    if whole:
        (saves / f"global_step_{step}" / MARKER).write_text(str(step))
    return folder


def test_the_same_work_has_the_same_key_wherever_it_lies(tmp_path: Path) -> None:
    assert a_job(tmp_path / "a").key == a_job(tmp_path / "b").key
    assert a_job(tmp_path).key != a_job(tmp_path, seed=2).key
    assert a_job(tmp_path).key != a_job(tmp_path, training=Training(learning_rate=1e-4)).key


def test_a_job_reads_back_as_it_was_written(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert TrainingJob.read(job.write()) == job


def test_a_later_attempt_replaces_the_steps_that_it_did_again(tmp_path: Path) -> None:
    first = [{"step": step, "data": {"reward": 0.1 * step}} for step in (1, 2, 3)]
    second = [{"step": 2, "data": {"reward": 9.0}}, {"step": 3, "data": {"reward": 8.0}}]
    (tmp_path / "metrics-001.jsonl").write_text("\n".join(map(json.dumps, first)) + '\n{"step": 4, "da')
    (tmp_path / "metrics-002.jsonl").write_text("\n".join(map(json.dumps, second)) + "\n")
    assert [(record["step"], record["reward"]) for record in metrics(tmp_path)] == [(1, 0.1), (2, 9.0), (3, 8.0)]
    assert next_attempt(tmp_path) == 3


def test_a_half_written_save_is_dropped_and_the_tracker_names_the_newest_whole_one(tmp_path: Path) -> None:
    a_save(tmp_path, 10)
    a_save(tmp_path, 20, whole=False)
    (tmp_path / TRACKER).write_text("")  # verl truncates it before it writes: a kill leaves it empty
    assert repair(tmp_path) == 10
    assert (tmp_path / TRACKER).read_text() == "10"
    assert not (tmp_path / "global_step_20").exists()


def test_with_no_whole_save_training_begins_anew(tmp_path: Path) -> None:
    a_save(tmp_path, 10, whole=False)
    (tmp_path / TRACKER).write_text("10")
    assert repair(tmp_path) is None
    assert not (tmp_path / TRACKER).exists()


def test_two_saves_are_kept(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        a_save(tmp_path, step)
    prune(tmp_path)
    assert whole_saves(tmp_path) == [20, 30]


def test_a_candidate_is_published_once_and_whole(tmp_path: Path) -> None:
    job, weights = a_job(tmp_path), a_save(tmp_path / "saves", 10)
    (tmp_path / "candidates" / ".step-000010").mkdir(parents=True)  # left by a kill in the middle of a copy
    first = publish_candidate(job, 10, weights)
    (weights / "model.safetensors").write_bytes(b"changed afterwards")
    assert publish_candidate(job, 10, weights) == first
    assert (first / "model.safetensors").read_bytes() == bytes([10])
    assert candidates(tmp_path) == {10: first}


def test_the_best_candidate_is_the_earlier_of_equals(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    for step in (10, 20, 30):
        publish_candidate(job, step, a_save(tmp_path / "saves", step))
    assert best(tmp_path, {0: 0.9, 10: 0.4, 20: 0.5, 30: 0.5})[0] == 20


def test_no_scored_candidate_is_an_error_and_not_the_last_one(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="no candidate has a validation score"):
        best(tmp_path, {0: 0.9})


def test_steps_that_no_checkpoint_would_save_are_refused() -> None:
    with pytest.raises(ValueError, match="no multiple of save_every"):
        Training(steps=25, save_every=10)
