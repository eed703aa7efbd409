"""`ratchet tune`: the search space, the sweep file and the trials."""

from __future__ import annotations

import json
import shlex
import sys
from io import StringIO
from pathlib import Path

import jsonschema
import optuna
import pytest
import yaml
from rich.console import Console
from wandb.apis.public.sweeps import _validate_config_and_fill_distribution

from cli import main as cli
from experiments.search import open_search, suggest
from experiments.search_space import change, check_search_space, own_point
from experiments.sweep import sweep, write_sweep
from experiments.trials import TrialOutcome, Trials, train_command
from experiments.tune import tune
from resources.config.load import ProfileError, load_profile
from resources.config.profile import Profile
from resources.config.tuning import KeyRange, Tuning
from resources.settings import Settings
from tests.experiments.toy_study import study_in
from verl_jobs.config.algorithms import ALGORITHMS
from verl_jobs.job import VALIDATION

# The schema of W&B's package `sweeps` (MIT), which cannot be installed because it requires numpy 1.
SCHEMA = json.loads(Path(__file__).with_name("wandb-sweeps-0.3.0.json").read_text())


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (
            "tuning.space.training.learning_rat={uniform: [1.0, 2.0]}",
            ("training.learning_rat:", "'learning_rate'"),
        ),
        (
            "tuning.space.training.learning_rate={uniform: [3, 2]}",
            ("tuning.space.training.learning_rate:", "low 3", "high 2"),
        ),
        ("tuning.space.training.learning_rate={log_uniform: [0, 2]}", ("above 0", "uniform")),
        ("tuning.space.training.learning_rate={normal: [0.1, 2]}", ("'uniform'",)),
        ("tuning.space.training.learning_rate={uniform: [low, 2]}", ("valid number",)),
        (
            "tuning.space.training.learning_rate={uniform: [-1.0, 2]}",
            ("training.learning_rate:", "greater than 0"),
        ),
        ("tuning.space.training.learning_rate={choice: [0.1]}", ("learning_rate", "choice")),
        ("tuning.space.training.learning_rate={}", ("log_uniform, uniform, choice",)),
        (
            "tuning.space.training.group_size={uniform: [4.5, 8]}",
            ("training.group_size:", "valid integer"),
        ),
        (
            "tuning.space.training.group_size={log_uniform: [4, 8]}",
            ("training.group_size", "whole number", "uniform"),
        ),
        (
            "tuning.space.training.kl_in={choice: [loss, rewards]}",
            ("training.kl_in:", "'rewards'", "reward"),
        ),
        (
            "tuning.space.training.reward_normalised={uniform: [0, 1]}",
            ("training.reward_normalised", "choice"),
        ),
        ("tuning.space.warm_up.steps={uniform: [40, 80]}", ("warm_up.steps", "`training`")),
        ("tuning.space={}", ("tuning.space",)),
    ],
)
def test_an_invalid_space_is_one_line_with_key_and_fix(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    change: str,
    names: tuple[str, ...],
) -> None:
    monkeypatch.setenv("RATCHET_SET", "")
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "ratchet",
            "tune",
            "--profile",
            "small",
            "--sweep",
            str(tmp_path / "sweep.yaml"),
            "--set",
            change,
        ],
    )
    with pytest.raises(SystemExit) as exit:
        cli.main()
    error = capsys.readouterr().err
    assert exit.value.code == 2
    assert error.startswith("error: ")
    assert len(error.splitlines()) == 1, error
    assert all(name in error for name in names), error
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["embedded", "small", "gpu", "cluster"])
def test_every_profiles_search_space_is_valid_and_holds_its_values(name: str) -> None:
    profile = load_profile(name)
    assert check_search_space(profile)
    assert own_point(profile)


@pytest.mark.parametrize(
    "algorithm", [name for name, algorithm in ALGORITHMS.items() if algorithm.clips]
)
@pytest.mark.parametrize("name", ["embedded", "gpu"])
def test_the_clip_range_is_not_searched_under_another_clipping_rule(
    tmp_path: Path, name: str, algorithm: str
) -> None:
    profile = load_profile(name, [f"training.algorithm={algorithm}"])
    assert set(profile.tuning.space) - set(check_search_space(profile)) == {"training.clip"}
    assert own_point(profile)
    output = StringIO()
    write_sweep(tmp_path / "sweep.yaml", profile, name, [], Console(file=output))
    assert (
        "training.clip" not in yaml.safe_load((tmp_path / "sweep.yaml").read_text())["parameters"]
    )
    assert f"training.clip is not searched: {algorithm}" in output.getvalue()


def test_a_search_of_an_ignored_clip_range_alone_is_refused() -> None:
    profile = load_profile(
        "small", ["training.algorithm=dapo", "tuning.space={training.clip: {choice: [0.1, 0.2]}}"]
    )
    with pytest.raises(ProfileError, match=r"training\.clip .*dapo"):
        check_search_space(profile)


def test_a_space_is_written_by_sections_or_by_full_keys() -> None:
    spans = {
        "training.clip": KeyRange(uniform=(0.1, 0.3)),
        "training.scale.updates": KeyRange(choice=(1, 2)),
    }
    nested = {
        "training": {"clip": {"uniform": [0.1, 0.3]}, "scale": {"updates": {"choice": [1, 2]}}}
    }
    assert Tuning.model_validate({"space": nested}).space == spans == Tuning(space=spans).space


@pytest.mark.parametrize("name", ["embedded", "gpu"])
def test_wandbs_own_schema_accepts_the_sweep(tmp_path: Path, name: str) -> None:
    profile = load_profile(name)
    write_sweep(
        tmp_path / "sweep.yaml", profile, name, [], Console(file=(tmp_path / "out").open("w"))
    )
    written = yaml.safe_load((tmp_path / "sweep.yaml").read_text())
    checker = jsonschema.FormatChecker()
    checker.checks("float")(lambda value: isinstance(value, float))
    checker.checks("integer")(lambda value: isinstance(value, int))
    jsonschema.Draft7Validator(SCHEMA, format_checker=checker).validate(written)
    assert _validate_config_and_fill_distribution(written) == written, (
        "W&B would have filled in a distribution"
    )
    assert list(written["parameters"]) == list(profile.tuning.space)


def test_the_schema_refuses_invalid_sweeps() -> None:
    valid = sweep(load_profile("small"), "small", [])
    for invalid in (
        {"method": "bays"},
        {"early_terminate": {"type": "asha"}},
        {"parameters": {"a": {"distribution": "uniform", "min": 0.1}}},
    ):
        assert list(jsonschema.Draft7Validator(SCHEMA).iter_errors(valid | invalid))


def test_a_range_of_whole_numbers_is_int_uniform() -> None:
    profile = Profile(tuning=Tuning(space={"training.group_size": KeyRange(uniform=(4, 8))}))
    assert sweep(profile, "embedded", [])["parameters"] == {
        "training.group_size": {"distribution": "int_uniform", "min": 4, "max": 8}
    }


def test_a_sweep_agents_command_sets_the_sampled_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = sweep(load_profile("small"), "small", ["training.steps=4"])
    sampled = [
        f"{key}={span.get('max', span.get('values', [0])[-1])}"
        for key, span in config["parameters"].items()
    ]
    monkeypatch.setenv("RATCHET_SET", "")
    monkeypatch.setattr(sys, "argv", [*config["command"][:-1], "--show", *sampled])
    with pytest.raises(SystemExit) as exit:
        cli.main()
    output = capsys.readouterr().out
    assert exit.value.code == 0
    for override in (
        "optim.lr=0.0006",
        "actor.entropy_coeff=0.01",
        "actor.clip_ratio_high=0.3",
        "rollout.temperature=1.2",
        "total_training_steps=4",
    ):
        assert override in output
    assert "ppo_mini_batch_size=4" in output
    assert "kl_loss_coef=0.01" in output


def test_an_unfinished_trial_is_resumed_under_its_number(tmp_path: Path) -> None:
    study, console = study_in(tmp_path), Console(quiet=True)
    profile = study.profile
    record = open_search(study, "tune", 2, console)
    begun = [dict(suggest(trial, profile)) for trial in record.sampled(2)]
    assert begun[0] == own_point(profile)
    again = open_search(study, "tune", 3, console)
    resumed = list(again.sampled(3))
    assert [trial.number for trial in resumed] == [0, 1, 2]
    assert [suggest(trial, profile) for trial in resumed[:2]] == begun


def test_validations_after_an_early_stop_are_not_part_of_the_result(tmp_path: Path) -> None:
    study = study_in(tmp_path)
    record = open_search(study, "tune", 2, Console(quiet=True))
    first, second = record.sampled(2)
    suggest(first, study.profile)
    suggest(second, study.profile)
    trials = Trials(record.search, study.job(1001))
    for trial in trials.begun():
        folder = trials.job(trial.params).path
        folder.mkdir(parents=True)
        rows = [
            {
                "step": step,
                "data": {VALIDATION: step / 100, "timing_s/step": 60.0},
            }
            for step in (0, 2, 4)
        ]
        (folder / "metrics-001.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    trials.job(first.params).finish()
    trials.search.tell(first, 0.04)
    second.report(0.02, 2)
    trials.search.tell(second, state=optuna.trial.TrialState.PRUNED)
    assert trials.ended() == [1, 2]
    finished, stopped = trials.outcomes()
    assert (finished.best, finished.best_step, finished.end) == (0.04, 4, "all steps")
    assert (stopped.best, stopped.best_step) == (0.02, 2)
    assert stopped.end == "others were better at step 2"
    assert trials.best() == finished


def test_the_printed_command_sets_the_best_trials_values(monkeypatch: pytest.MonkeyPatch) -> None:
    point = {
        "training.learning_rate": 1.2e-05,
        "training.scale.updates": 2,
        "training.kl_in": "reward",
    }
    monkeypatch.setenv(
        "RATCHET_SET", "training.steps=4\ntuning.trials=3\ntraining.learning_rate=1.0"
    )
    best = TrialOutcome(1, point, best=0.1, best_step=2, step=4, minutes=1.0, end="")
    words = shlex.split(train_command(best, Settings.read("small")))
    assert words[:4] == ["ratchet", "train", "--profile", "small"]
    monkeypatch.setenv("RATCHET_SET", "\n".join(words[5::2]))
    training = Settings.read("small").profile.training
    assert (training.learning_rate, training.scale.updates, training.kl_in, training.steps) == (
        1.2e-05,
        2,
        "reward",
        4,
    )


@pytest.mark.parametrize(
    "space", ["training.stepz: {choice: [1]}", "training: {lora: {uniform: [1, 2]}}"]
)
def test_a_range_that_cannot_be_searched_is_named_with_its_file(tmp_path: Path, space: str) -> None:
    base, mine = tmp_path / "base.yaml", tmp_path / "mine.yaml"
    base.write_text(f"extends: small\ntuning: {{space: {{{space}}}}}", encoding="utf-8")
    mine.write_text("extends: base.yaml\ntuning: {trials: 2}", encoding="utf-8")
    settings = Settings.read(str(mine))
    with pytest.raises(ProfileError) as caught:
        tune(settings, None, None, Console(quiet=True))
    assert str(caught.value).startswith(f"{base}: tuning.space")


def test_a_key_of_another_section_is_refused() -> None:
    with pytest.raises(ProfileError, match=r"seed .*`training`"):
        check_search_space(Profile(tuning=Tuning(space={"seed": KeyRange(uniform=(1, 2))})))


def test_a_change_is_written_as_the_command_line_reads_it() -> None:
    assert [change("a", value) for value in (1e-05, True, "reward", 2)] == [
        "a=1e-05",
        "a=true",
        "a=reward",
        "a=2",
    ]
