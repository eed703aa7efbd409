"""`ratchet ablate`: short forms of keys, refused changes, scoring and the report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from experiments.ablate import (
    BASELINE,
    Variant,
    compare,
    full_key,
    heldout_benchmark,
    score,
    variant,
)
from experiments.ablation_results import limits, report, rows
from experiments.study import Study
from resources.config.load import ProfileError
from resources.run_record import HeldoutDraw
from resources.settings import Settings
from tests.experiments.toy_study import card, study_in
from verl_jobs.config.training import Training

VARIANTS = [
    Variant("curriculum=window", ("training.curriculum.schedule=window",)),
    Variant("reward.format=0", ("reward.weights.format=0",)),
]


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("reward.style=0", "reward.weights.style=0"),
        ("reward.efficiency=off", "reward.weights.efficiency=0"),
        ("curriculum=off", "training.curriculum.schedule=uniform"),
        ("curriculum=window", "training.curriculum.schedule=window"),
        ("algorithm=rloo", "training.algorithm=rloo"),
        ("reward.sparse=false", "reward.sparse=false"),
        ("training.learning_rate=1e-4", "training.learning_rate=1e-4"),
    ],
)
def test_a_short_form_is_a_key_of_the_profile(word: str, key: str) -> None:
    assert full_key(word) == key


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("learnig_rate=1e-4", "did you mean learning_rate"),
        ("reward.stile=0", "did you mean reward.style"),
        ("training.curiculum.target=0.4", "training.curiculum: .*'curriculum'"),
        ("algorithm=grop", "'grop', did you mean grpo"),
        ("curriculum=off", "changes nothing"),
        ("family.train=8", "changes family"),
        ("group_size=2", r"training.group_size.*--set training.group_size=N"),
        ("style", "write section.key=value"),
    ],
)
def test_an_invalid_change_is_refused_with_its_key(word: str, names: str) -> None:
    with pytest.raises(ProfileError, match=names):
        variant(word, Settings.read("small"))


def test_a_change_is_compared_with_the_baselines_own_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "RATCHET_SET", "training.curriculum.schedule=window\nreward.weights.style=0.2"
    )
    base = Settings.read("small")
    assert variant("curriculum=off", base).changes == ("training.curriculum.schedule=uniform",)
    with pytest.raises(ProfileError, match="changes nothing"):
        variant("curriculum=window", base)


def test_only_seeds_that_both_variants_finished_are_compared() -> None:
    scores = {
        (BASELINE, 1): card("1110"),
        (BASELINE, 2): card("1100"),
        ("curriculum=window", 1): card("1000"),
        ("curriculum=window", 2): card("1000"),
        ("reward.format=0", 2): card("1100"),
    }
    contributions = compare(scores, VARIANTS)
    window, no_format = contributions["curriculum=window"], contributions["reward.format=0"]
    assert (window.difference, window.seeds) == (0.375, 2)
    assert (no_format.difference, no_format.seeds, no_format.significant) == (0.0, 1, False)


def test_intervals_of_several_changes_are_wider_than_of_one() -> None:
    scores = {
        (name, 1): card(solved)
        for name, solved in ((BASELINE, "11110000" * 8), ("curriculum=window", "10101000" * 8))
    }
    alone = compare(scores, VARIANTS[:1])["curriculum=window"].interval
    together = compare(scores, VARIANTS)["curriculum=window"].interval
    assert alone
    assert together
    assert together.high - together.low > alone.high - alone.low


def test_the_limits_name_a_single_seed() -> None:
    contributions = compare(
        {(BASELINE, 1): card("10"), ("curriculum=window", 1): card("00")}, VARIANTS[:1]
    )
    assert "One seed" in " ".join(limits(contributions))


def test_the_report_holds_table_plot_and_figures(tmp_path: Path) -> None:
    scores = {
        (name, seed): card(solved)
        for seed in (1, 2, 3)
        for name, solved in ((BASELINE, "1111"), ("curriculum=window", "0000"))
    }
    contributions = compare(scores, VARIANTS[:1])
    study = cast(
        Study,
        SimpleNamespace(
            reports=tmp_path / "reports", id="study-a", profile=SimpleNamespace(training=Training())
        ),
    )
    page = report(contributions, {"reward.format=0, seed 1": "ended FAILED"}, study, 3)
    text, facts = page.read_text(), json.loads(page.with_suffix(".json").read_text())
    assert "| curriculum=window | 100.0 % | 0.0 % | +100.0 |" in text
    assert "reward.format=0, seed 1 failed: ended FAILED" in text
    assert facts["changes"]["curriculum=window"]["seeds"] == 3
    assert page.with_suffix(".svg").read_text().startswith("<svg")
    assert rows(contributions)[0][-1] == "the baseline's setting helps"


def test_a_stored_score_is_used_only_for_its_own_draw(tmp_path: Path) -> None:
    study = study_in(tmp_path)
    job, draw = study.job(1001), heldout_benchmark(study)
    job.path.mkdir(parents=True)
    card("10", draw.version).write(job.path / "heldout.json")
    assert score(job, study, draw).pass_at_1 == 0.5
    other = HeldoutDraw(seed=1, first=24, count=study.profile.evaluation.heldout)
    study.stage.pipeline_run.change(draws=(other,))
    with pytest.raises(LookupError, match="no candidate has a validation score"):
        score(job, study, heldout_benchmark(study))
