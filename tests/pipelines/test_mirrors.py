"""With an object store, each seed, trial and variant of a study has a mirror of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.training_job import training_job
from experiments.study import Study
from experiments.trials import discard_saves, trial_job
from resources.run_record import Kind
from tests.artifacts.object_store import no_object_store, object_store
from tests.experiments.toy_study import study_in
from tests.verl_jobs.saves import save_as_verl, scored
from verl_jobs import faults
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.callback import fetch
from verl_jobs.trainer.checkpoints import repair


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store("mirrors") as url:
        yield url


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        f"{request.getfixturevalue('bucket')}/{tmp_path.name}"
        if request.param == "s3"
        else str(tmp_path / "store")
    )


def study(tmp_path: Path, root: str, id: str = "study-a", kind: Kind = "study") -> Study:
    return study_in(tmp_path, f"storage: {{root: '{root}'}}", id, kind)


def test_seeds_trials_and_variants_do_not_share_checkpoints(tmp_path: Path, root: str) -> None:
    seeds_study = study(tmp_path, root)
    first = seeds_study.job(1001)
    first.path.mkdir(parents=True)
    scored(first.path, {0: 0.2, 20: 0.6})
    save_as_verl(first, [15, 20])
    others = [
        seeds_study.job(1002),
        trial_job(first, {"training.learning_rate": 3e-5}),
        seeds_study.job(1001, {"steps": 10}),
    ]
    assert (
        len({job.mirror for job in (first, *others)})
        == len({job.folder for job in (first, *others)})
        == 4
    )
    for other in others:
        other.path.mkdir(parents=True)
        fetch(other)
        assert repair(other.path) is None
        assert other.validations() == {}
        assert not (other.path / "candidates").exists()
    again = first.model_copy(update={"folder": str(tmp_path / "bare")})
    again.path.mkdir()
    fetch(again)
    assert repair(again.path) == 20
    assert again.validations() == first.validations()


def test_the_mirror_path_of_a_pipeline_run_is_stable(tmp_path: Path) -> None:
    run = study(tmp_path, str(tmp_path / "store") + "/", "chain-0001", "pipeline")
    job = training_job(run.stage, run.rows)
    assert job.mirror == f"{tmp_path}/store/trainings/chain-0001/{job.key[:12]}"
    assert TrainingJob.read(job.write()) == job


def test_a_finished_trial_leaves_only_its_figures_in_the_mirror(tmp_path: Path, root: str) -> None:
    base, point = study(tmp_path, root).job(1001), {"training.learning_rate": 3e-5}
    over, other = trial_job(base, point), trial_job(base, {"training.learning_rate": 4e-5})
    for job in (over, other):
        job.path.mkdir(parents=True)
        scored(job.path, {0: 0.2, 20: 0.6})
        save_as_verl(job, [20])
    discard_saves(over)
    for job, step in ((over, None), (other, 20)):
        bare = job.model_copy(update={"folder": str(tmp_path / f"bare-{job.key[:4]}")})
        bare.path.mkdir()
        fetch(bare)
        assert repair(bare.path) == step
        assert bare.validations() == {20: 0.6, 0: 0.2}


@pytest.mark.slow
def test_copies_that_cannot_be_removed_are_recorded_as_faults(tmp_path: Path) -> None:
    base, point = (
        study(tmp_path, "").job(1001).model_copy(update={"store": "s3://gone"}),
        {"training.learning_rate": 3e-5},
    )
    over = trial_job(base, point)
    over.path.mkdir(parents=True)
    with no_object_store():
        discard_saves(over)
    [fault] = faults.read(over.path)
    assert str(over.mirror) in fault.what
