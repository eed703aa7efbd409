"""`ratchet train --seeds`: outcomes, their mean and interval."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from artifacts.integrity import seal
from evaluation.reports.plots import Band, bands
from evaluation.statistics.hypothesis_tests import t_interval
from experiments.seeds import report, summary
from experiments.study import Study, outcome, study_id
from resources.config.profile import Profile
from resources.config.tuning import Tuning
from rewards.config import RewardConfig
from verl_jobs.config.training import Training
from verl_jobs.job import VALIDATION, TrainingJob


def finished_job(folder: Path, seed: int, validations: dict[int, float]) -> TrainingJob:
    """Write the files of a finished training with these validations; return its job."""
    job = TrainingJob(
        folder=str(folder),
        run_id=f"study-a-s{seed}",
        start="s",
        train="t",
        validation="v",
        inputs={},
        training=Training(),
        reward=RewardConfig(),
        reward_hash="f",
        isolation="auto",
        seed=seed,
    )
    folder.mkdir(parents=True)
    rows = [
        {
            "step": step,
            "data": {VALIDATION: share, "timing_s/step": 30.0, "critic/score/mean": share},
        }
        for step, share in validations.items()
    ]
    (folder / "metrics-001.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "done.json").write_text(seal('{\n "files": {}\n}'))
    return job


def test_the_interval_of_a_few_runs_is_students() -> None:
    # deviation 1.5811, standard error 0.7071, t with 4 degrees of freedom 2.7764
    low, high = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (low, high) == pytest.approx((3 - 1.9632, 3 + 1.9632), abs=1e-4)
    with pytest.raises(ValueError, match="at least two runs"):
        t_interval([1.0])


def test_an_outcome_is_read_from_the_trainings_metrics(tmp_path: Path) -> None:
    job = finished_job(tmp_path / "a", 1001, {0: 0.2, 5: 0.5, 10: 0.5, 20: 0.4})
    result = outcome(job)
    assert (result.start, result.best, result.best_step) == (0.2, 0.5, 5)
    assert (result.steps, result.minutes) == (20, 1.5)


def test_the_validation_of_an_interrupted_step_is_left_out(tmp_path: Path) -> None:
    result = outcome(finished_job(tmp_path / "a", 1001, {0: 0.1, 5: 0.2, 7: 0.9, 10: 0.3}))
    assert (result.best, result.best_step) == (0.3, 10)


def test_a_training_without_a_validation_has_no_outcome(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="holds no validation"):
        outcome(finished_job(tmp_path / "a", 1001, {}))


def test_the_summary_gives_mean_and_interval_over_seeds(tmp_path: Path) -> None:
    outcomes = [
        outcome(finished_job(tmp_path / str(seed), seed, {0: 0.2, 5: 0.2 + seed / 10}))
        for seed in (1, 2, 3)
    ]
    text = summary(outcomes)
    assert "40.0 % (95 % interval 15.2 to 64.8)" in text
    assert "+20.0 points (95 % interval -4.8 to 44.8)" in text
    assert "30.0 % (one seed has no interval)" in summary(outcomes[:1])


def test_the_report_holds_table_plot_and_figures(tmp_path: Path) -> None:
    outcomes = [
        outcome(finished_job(tmp_path / str(seed), seed, {0: 0.2, 5: 0.4})) for seed in (1, 2)
    ]
    study = cast(Study, SimpleNamespace(reports=tmp_path / "reports", id="study-a"))
    page = report(outcomes, {3: "ended FAILED"}, study)
    assert "| 1 | 20.0 % | 40.0 % | +20.0 | 5 | 5 | 0.5 | no |" in page.read_text()
    assert "seed 3 failed: ended FAILED" in page.read_text()
    facts = json.loads((tmp_path / "reports" / "seeds.json").read_text())
    assert len(facts["outcomes"]) == 2
    assert (tmp_path / "reports" / "seeds.svg").read_text().startswith("<svg")


def test_a_band_includes_runs_that_ended_early() -> None:
    picture = bands([Band("validation", [[(0, 0.1), (5, 0.2)], [(0, 0.2)]])])
    assert picture.count("<polyline") > 3
    assert ">validation</text>" in picture


def test_a_studys_id_depends_on_its_start_alone() -> None:
    id = study_id(Profile(), "a")
    assert id == study_id(Profile(training=Training(steps=5)), "a")
    assert id == study_id(Profile(tuning=Tuning(trials=3)), "a")
    assert len({id, study_id(Profile(), "b"), study_id(Profile(seed=2), "a")}) == 3
