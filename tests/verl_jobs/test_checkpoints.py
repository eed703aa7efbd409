"""Checkpoints and candidates: kills, damage and retention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.integrity import CorruptArtifact
from tests.verl_jobs.saves import SHARD, a_save, published, scored
from tests.verl_jobs.test_job import a_job
from verl_jobs import faults
from verl_jobs.config.checkpoints import Keep
from verl_jobs.config.training import Training
from verl_jobs.job import candidates
from verl_jobs.trainer import trainer_lease
from verl_jobs.trainer.checkpoints import (
    SEAL,
    STATE,
    TRACKER,
    best,
    complete_saves,
    end_after_notice,
    prune,
    publish_candidate,
    repair,
    restore_settings,
    steps_to_keep,
)


def weights_of(save: Path) -> Path:
    return save / "actor" / "huggingface"


def test_a_half_written_checkpoint_is_removed(
    tmp_path: Path,
) -> None:
    a_save(tmp_path, 10)
    half = a_save(tmp_path, 20, whole=False)
    (tmp_path / "saves" / TRACKER).write_text(
        ""
    )  # verl truncates it first, so a kill leaves it empty
    assert repair(tmp_path) == 10
    assert not half.exists()
    assert (tmp_path / "saves" / TRACKER).read_text() == "10"


def test_without_a_complete_checkpoint_training_starts_over(tmp_path: Path) -> None:
    a_save(tmp_path, 10, whole=False)
    (tmp_path / "saves" / TRACKER).write_text("10")
    assert repair(tmp_path) is None
    assert not (tmp_path / "saves" / TRACKER).exists()


def truncated(save: Path) -> None:
    (save / SHARD).write_bytes((save / SHARD).read_bytes()[:-1])


def one_bit_other(save: Path) -> None:
    content = bytearray((save / SHARD).read_bytes())
    content[500] ^= 1
    (save / SHARD).write_bytes(content)


def shard_missing(save: Path) -> None:
    (save / SHARD).unlink()


def seal_torn(save: Path) -> None:
    (save / SEAL).write_text('{"data.pt": "ab')


def seal_no_object(save: Path) -> None:
    (save / SEAL).write_text("[]")


@pytest.mark.parametrize(
    "harm", [truncated, one_bit_other, shard_missing, seal_torn, seal_no_object]
)
def test_a_damaged_checkpoint_is_skipped_and_recorded_in_faults(
    tmp_path: Path, harm: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    good, newest = a_save(tmp_path, 10), a_save(tmp_path, 20)
    harm(newest)
    assert repair(tmp_path) == 10
    assert (tmp_path / "saves" / TRACKER).read_text() == "10"
    assert good.exists()
    assert not newest.exists()
    [fault] = faults.read(tmp_path)
    assert "step 20" in fault.what
    assert fault.what in capsys.readouterr().out
    assert repair(tmp_path) == 10
    assert len(faults.read(tmp_path)) == 1


STEPS = st.sets(st.integers(1, 60), max_size=12)


@given(
    STEPS,
    st.dictionaries(st.integers(1, 60), st.floats(0, 1)),
    st.integers(2, 4),
    st.integers(1, 3),
    st.integers(0, 10),
)
def test_only_the_newest_best_and_periodic_checkpoints_are_kept(
    steps: set[int], scores: dict[int, float], last: int, best: int, every: int
) -> None:
    stay = steps_to_keep(steps, scores, Keep(last=last, best=best, every=every))
    newest, multiples = (
        set(sorted(steps)[-last:]),
        {step for step in steps if every and step % every == 0},
    )
    known = {step: score for step, score in scores.items() if step in steps}
    others = stay - newest - multiples
    assert stay <= steps
    assert newest | multiples <= stay
    assert len(others) <= best
    assert others <= set(known)
    left_out = [score for step, score in known.items() if step not in stay]
    assert all(known[step] >= worse for step in others for worse in left_out)
    assert not known or max(known.values()) in {known[step] for step in stay & set(known)}


def test_checkpoints_and_candidates_follow_one_retention_policy(tmp_path: Path) -> None:
    job = a_job(tmp_path, training=Training(keep=Keep(last=2, best=1, every=25)))
    for step in (5, 10, 15, 20, 25, 30, 35):
        published(job, step)
    scored(tmp_path, {0: 0.9, 5: 0.1, 10: 0.4, 15: 0.4, 20: 0.2, 25: 0.1, 30: 0.0})
    prune(job)
    assert complete_saves(tmp_path / "saves") == [10, 25, 30, 35] == list(candidates(tmp_path))
    assert best(tmp_path, {10: 0.4, 25: 0.1, 30: 0.0, 35: 0.3})[0] == 10


def test_the_score_at_an_interruption_is_ignored_after_a_resume(tmp_path: Path) -> None:
    job = a_job(tmp_path, training=Training(keep=Keep(last=2, best=1, every=0)))
    for step in (5, 7, 10, 15, 20):
        published(job, step)
    scored(tmp_path, {0: 0.3, 5: 0.4, 7: 0.9, 10: 0.5})
    assert job.validations() == {0: 0.3, 5: 0.4, 10: 0.5}
    prune(job)
    assert list(candidates(tmp_path)) == [10, 15, 20]


def test_the_score_at_an_interruption_counts_when_alone(
    tmp_path: Path,
) -> None:
    job = a_job(tmp_path)
    scored(tmp_path, {0: 0.3, 7: 0.9})
    assert job.validations() == {0: 0.3, 7: 0.9}


def test_a_candidate_is_published_once_and_completely(tmp_path: Path) -> None:
    job, weights = a_job(tmp_path), weights_of(a_save(tmp_path, 10))
    (tmp_path / "candidates" / ".step-000010").mkdir(parents=True)  # left by a kill during a copy
    (tmp_path / "candidates" / "step-000010" / "half").mkdir(
        parents=True
    )  # left by a kill during a removal
    first = publish_candidate(job, 10, weights)
    assert not weights.exists()  # moved, not copied
    assert publish_candidate(job, 10, weights) == first
    assert (first / "model.safetensors").read_bytes() == bytes([10])
    assert candidates(tmp_path) == {10: first}


def test_candidates_of_repeated_steps_are_removed(
    tmp_path: Path,
) -> None:
    job = a_job(tmp_path)
    for step in (5, 10):
        published(job, step)
    publish_candidate(
        job, 15, weights_of(a_save(tmp_path, 15, whole=False))
    )  # killed before the seal
    truncated(tmp_path / "saves" / "global_step_10")
    assert repair(tmp_path) == 5
    assert list(candidates(tmp_path)) == [5]
    again = weights_of(a_save(tmp_path, 10))
    (again / "model.safetensors").write_bytes(b"other weights")
    assert (
        publish_candidate(job, 10, again) / "model.safetensors"
    ).read_bytes() == b"other weights"


def test_the_best_candidate_is_the_earlier_of_equals(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    for step in (10, 20, 30):
        published(job, step)
    assert best(tmp_path, {0: 0.9, 10: 0.4, 20: 0.5, 30: 0.5})[0] == 20


def test_a_changed_candidate_is_not_the_best(tmp_path: Path) -> None:
    candidate = published(a_job(tmp_path), 10)
    (candidate / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(CorruptArtifact, match=r"step-000010/model\.safetensors"):
        best(tmp_path, {10: 0.4})


def test_best_without_a_scored_candidate_raises(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=tmp_path.name):
        best(tmp_path, {0: 0.9})


def test_the_adaptive_kl_coefficient_is_restored(tmp_path: Path) -> None:
    job = a_job(tmp_path, training=Training(kl_coefficient=0.1, kl_in="reward", kl_target=0.02))
    save = a_save(tmp_path, 10)
    assert restore_settings(job, 10) == job == restore_settings(job, None)
    (save / STATE).write_text('{"kl_coefficient": 0.0625}')
    assert restore_settings(job, 10).training == Training(
        kl_coefficient=0.0625, kl_in="reward", kl_target=0.02
    )


def test_a_notice_ends_training_only_after_a_checkpoint(tmp_path: Path) -> None:
    end_after_notice(tmp_path, 0)
    trainer_lease.give_notice(tmp_path, "SIGTERM")
    with pytest.raises(trainer_lease.TrainingEnded, match="SIGTERM"):
        end_after_notice(tmp_path, 0)  # no step is done yet
    a_save(tmp_path, 10)
    end_after_notice(tmp_path, 11)
    with pytest.raises(trainer_lease.TrainingEnded):
        end_after_notice(tmp_path, 10)
