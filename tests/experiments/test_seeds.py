"""Several seeds of one training: what they agree on, and what is never done twice."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from evaluation.reports.plots import Band, bands
from evaluation.statistics.hypothesis_tests import t_interval
from experiments.seeds import report, summary
from experiments.study import Study, outcome, study_id, train_job
from resources.config.profile import Profile
from rewards.composite import RewardConfig
from verl_jobs.config.training import Training
from verl_jobs.job import VALIDATION, TrainingJob


def ended(folder: Path, seed: int, validations: dict[int, float]) -> TrainingJob:
    """A training that has ended, as its folder tells it."""
    job = TrainingJob(
        folder=str(folder),
        chain=f"study-a-s{seed}",
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
    (folder / "done.json").write_text("{}")
    return job


def test_the_interval_of_a_few_runs_is_students() -> None:
    low, high = t_interval(
        [1.0, 2.0, 3.0, 4.0, 5.0]
    )  # deviation 1.5811, error 0.7071, t of 4 degrees 2.7764
    assert low == pytest.approx(3 - 1.9632, abs=1e-4) and high == pytest.approx(
        3 + 1.9632, abs=1e-4
    )
    with pytest.raises(ValueError, match="one run has no interval"):
        t_interval([1.0])


def test_a_training_is_told_by_its_own_metrics(tmp_path: Path) -> None:
    found = outcome(ended(tmp_path / "a", 1001, {0: 0.2, 5: 0.5, 10: 0.5, 20: 0.4}))
    assert (found.start, found.best, found.best_step, found.steps, found.minutes) == (
        0.2,
        0.5,
        5,
        20,
        1.5,
    )


def test_a_step_at_which_it_was_only_stopped_is_no_validation_of_a_seed(tmp_path: Path) -> None:
    found = outcome(ended(tmp_path / "a", 1001, {0: 0.1, 5: 0.2, 7: 0.9, 10: 0.3}))
    assert (found.best, found.best_step) == (0.3, 10)


def test_a_training_without_a_validation_is_no_outcome(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="holds no validation"):
        outcome(ended(tmp_path / "a", 1001, {}))


def test_seeds_are_summed_up_by_mean_and_interval_and_one_has_none(tmp_path: Path) -> None:
    found = [
        outcome(ended(tmp_path / str(seed), seed, {0: 0.2, 5: 0.2 + seed / 10}))
        for seed in (1, 2, 3)
    ]
    assert (
        "Mean of 3 seeds: best validation 40.0 % (95 % interval 15.2 to 64.8), gain +20.0 points "
        "(95 % interval -4.8 to 44.8)" in summary(found)
    )
    assert "Mean of 1 seed: best validation 30.0 % (one seed has no interval)" in summary(found[:1])


def test_table_plot_and_figures_lie_beside_each_other(tmp_path: Path) -> None:
    found = [outcome(ended(tmp_path / str(seed), seed, {0: 0.2, 5: 0.4})) for seed in (1, 2)]
    made = cast(Study, SimpleNamespace(reports=tmp_path / "reports", id="study-a"))
    page = report(found, {3: "ended FAILED"}, made)
    assert (
        "| 1 | 20.0 % | 40.0 % | +20.0 | 5 | 5 | 0.5 | no |" in page.read_text()
        and "seed 3 failed: ended FAILED" in page.read_text()
    )
    facts = json.loads((tmp_path / "reports" / "seeds.json").read_text())
    assert len(facts["outcomes"]) == 2 and (
        tmp_path / "reports" / "seeds.png"
    ).read_bytes().startswith(b"\x89PNG")


def test_a_band_is_drawn_though_one_run_ended_early() -> None:
    assert bands([Band("validation", [[(0, 0.1), (5, 0.2)], [(0, 0.2)]])]).startswith(b"\x89PNG")


def test_a_seed_that_ended_is_not_run_again(tmp_path: Path) -> None:
    console = Console(file=StringIO())
    train_job(ended(tmp_path / "a", 1, {0: 0.1}), cast(Study, None), "seed 1 (1 of 2)", console)
    assert "seed 1 (1 of 2): there already" in cast(Any, console.file).getvalue()


def test_a_study_is_known_by_what_it_starts_from_and_not_by_what_it_tries() -> None:
    known = study_id(Profile(), "a")
    assert known == study_id(Profile(training=Training(steps=5)), "a")
    assert len({known, study_id(Profile(), "b"), study_id(Profile(seed=2), "a")}) == 3
