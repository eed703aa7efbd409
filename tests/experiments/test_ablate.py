"""An ablation: its short forms, the changes that it refuses, and its report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from evaluation.benchmarks import heldout
from evaluation.scorecard import Sample, Scorecard
from experiments.ablate import (
    BASELINE,
    Variant,
    compared,
    limits,
    report,
    rows,
    scored,
    spelled_out,
    variant,
)
from experiments.study import Study
from problems.sources.heldout import heldout_draw
from resources.config.load import ProfileError, load_profile
from resources.run_record import Draw, open_run
from resources.settings import Settings
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

VARIANTS = [
    Variant("curriculum=window", ("training.curriculum.schedule=window",)),
    Variant("reward.format=0", ("reward.weights.format=0",)),
]


def card(solved: str, version: str = "v") -> Scorecard:
    samples = tuple(
        Sample(task_id=f"t/{i}", answer="", program="", verdict="AC" if s == "1" else "WA")
        for i, s in enumerate(solved)
    )
    return Scorecard(
        benchmark="heldout",
        benchmark_version=version,
        harness_version="1",
        checkpoint="c",
        checkpoint_hash="h",
        sampling={},
        samples=samples,
        isolation="none",
    )


@pytest.mark.parametrize(
    ("asked", "key"),
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
def test_a_short_form_is_a_key_of_the_profile(asked: str, key: str) -> None:
    assert spelled_out(asked) == key


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("learnig_rate=1e-4", "no such key, did you mean learning_rate"),
        ("reward.stile=0", "no such key, did you mean reward.style"),
        (
            "training.curiculum.target=0.4",
            "training.curiculum: no such key, did you mean 'curriculum'",
        ),
        ("algorithm=grop", "no 'grop', did you mean grpo"),
        ("curriculum=off", "changes nothing: the baseline has it so already"),
        ("family.train=8", "changes family, which the trainings of an ablation share"),
        (
            "group_size=2",
            r"changes training.group_size, and with it the budget: .*--set training.group_size=N",
        ),
        ("style", "changes nothing: write section.key=value"),
    ],
)
def test_what_is_no_ablation_is_refused_with_the_fix(asked: str, said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        variant(asked, Settings.read("small"))


def test_the_baselines_own_changes_are_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "RATCHET_SET", "training.curriculum.schedule=window\nreward.weights.style=0.2"
    )
    base = Settings.read("small")
    assert variant("curriculum=off", base).changes == ("training.curriculum.schedule=uniform",)
    with pytest.raises(ProfileError, match="changes nothing"):
        variant("curriculum=window", base)


def test_a_change_is_compared_by_the_seeds_that_both_ended_with() -> None:
    scores = {
        (BASELINE, 1): card("1110"),
        (BASELINE, 2): card("1100"),
        ("curriculum=window", 1): card("1000"),
        ("curriculum=window", 2): card("1000"),
        ("reward.format=0", 2): card("1100"),
    }
    found = compared(scores, VARIANTS)
    assert (found["curriculum=window"].difference, found["curriculum=window"].seeds) == (0.375, 2)
    assert (
        found["reward.format=0"].difference,
        found["reward.format=0"].seeds,
        found["reward.format=0"].shown,
    ) == (0.0, 1, False)


def test_intervals_of_several_changes_are_wider_than_of_one() -> None:
    scores = {
        (name, 1): card(solved)
        for name, solved in ((BASELINE, "11110000" * 8), ("curriculum=window", "10101000" * 8))
    }
    alone = compared(scores, VARIANTS[:1])["curriculum=window"].interval
    together = compared(scores, VARIANTS)["curriculum=window"].interval
    assert alone and together and together.high - together.low > alone.high - alone.low


def test_one_seed_is_told_to_be_one() -> None:
    found = compared(
        {(BASELINE, 1): card("10"), ("curriculum=window", 1): card("00")}, VARIANTS[:1]
    )
    assert "One seed: the interval is over tasks alone." in " ".join(limits(found))


def test_table_plot_and_figures_lie_beside_each_other(tmp_path: Path) -> None:
    scores = {
        (name, seed): card(solved)
        for seed in (1, 2, 3)
        for name, solved in ((BASELINE, "1111"), ("curriculum=window", "0000"))
    }
    found = compared(scores, VARIANTS[:1])
    made = cast(
        Study,
        SimpleNamespace(
            reports=tmp_path / "reports", id="study-a", profile=SimpleNamespace(training=Training())
        ),
    )
    page = report(found, {"reward.format=0, seed 1": "ended FAILED"}, made, 3)
    text, facts = page.read_text(), json.loads(page.with_suffix(".json").read_text())
    assert (
        "| curriculum=window | 100.0 % | 0.0 % | +100.0 |" in text
        and "reward.format=0, seed 1 failed: ended FAILED" in text
    )
    assert facts["changes"]["curriculum=window"]["seeds"] == 3 and page.with_suffix(
        ".png"
    ).read_bytes().startswith(b"\x89PNG")
    assert rows(found)[0][-1] == "the baseline's setting helps"


def test_a_run_that_was_scored_is_not_scored_again_and_another_draw_is_no_score_of_it(
    tmp_path: Path,
) -> None:
    profile = load_profile("small")
    version = heldout(heldout_draw(profile.family, 1, profile.evaluation.heldout)).version
    pipeline_run = open_run(
        tmp_path / "runs",
        "study-a",
        kind="study",
        base_seed=1,
        profile="small",
        why="test",
        champion=None,
    )
    made = cast(
        Study, SimpleNamespace(profile=profile, stage=SimpleNamespace(pipeline_run=pipeline_run))
    )
    job = TrainingJob(
        folder=str(tmp_path),
        chain="study-a-s1",
        start="s",
        train="t",
        validation="v",
        inputs={},
        training=profile.training,
        reward=profile.reward,
        reward_hash="f",
        isolation="auto",
        seed=1,
    )
    card("10", version).write(tmp_path / "heldout.json")
    assert scored(job, made).pass_at_1 == 0.5
    pipeline_run.change(draws=(Draw(seed=1, first=24, count=profile.evaluation.heldout),))
    with pytest.raises(LookupError, match="no candidate has a validation score"):
        scored(job, made)
