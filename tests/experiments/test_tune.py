"""The search over settings: its space, its sweep file, its trials, and its resume after a kill."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
import yaml
from rich.console import Console
from wandb.apis.public.sweeps import _validate_config_and_fill_distribution

from cli import main as cli
from experiments.search_space import change, check_search_space, own_point
from experiments.study import study_id
from experiments.sweep import sweep, write_sweep
from experiments.trials import Outcome, Trials, line
from resources.config.load import ProfileError, load_profile
from resources.config.profile import Profile
from resources.config.tuning import Span, Tuning
from resources.settings import Settings
from rewards.composite import RewardConfig
from tests.experiments import toy_search
from verl_jobs.config.algorithms import ALGORITHMS
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

SCHEMA = json.loads(
    Path(__file__).with_name("wandb-sweeps-0.3.0.json").read_text()
)  # of W&B's own package `sweeps` (MIT), which wants numpy 1


def base(folder: Path) -> TrainingJob:
    return TrainingJob(
        folder=str(folder / "training" / "x"),
        chain="study-a-s1001",
        start="s",
        train="t",
        validation="v",
        inputs={},
        training=Training(),
        reward=RewardConfig(),
        reward_hash="f",
        isolation="auto",
        seed=1001,
    )


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            "tuning.space.training.learning_rat={uniform: [1.0, 2.0]}",
            "training.learning_rat: no such key, did you mean 'learning_rate'",
        ),
        (
            "tuning.space.training.learning_rate={uniform: [3, 2]}",
            "tuning.space.training.learning_rate: low 3 is not below high 2",
        ),
        (
            "tuning.space.training.learning_rate={log_uniform: [0, 2]}",
            "begin above 0, or take uniform",
        ),
        (
            "tuning.space.training.learning_rate={normal: [0.1, 2]}",
            "no such key, did you mean 'uniform'",
        ),
        ("tuning.space.training.learning_rate={uniform: [low, 2]}", "should be a valid number"),
        (
            "tuning.space.training.learning_rate={uniform: [-1.0, 2]}",
            "training.learning_rate: Input should be greater than 0",
        ),
        ("tuning.space.training.learning_rate={choice: [0.1]}", "leaves nothing to try"),
        (
            "tuning.space.training.learning_rate={}",
            "give one of log_uniform, uniform, choice, here are none",
        ),
        (
            "tuning.space.training.group_size={uniform: [4.5, 8]}",
            "training.group_size: Input should be a valid integer",
        ),
        (
            "tuning.space.training.group_size={log_uniform: [4, 8]}",
            "training.group_size is a whole number: give uniform, or a choice",
        ),
        (
            "tuning.space.training.kl_in={choice: [loss, rewards]}",
            "training.kl_in: no 'rewards', did you mean reward",
        ),
        (
            "tuning.space.training.reward_normalised={uniform: [0, 1]}",
            "training.reward_normalised is no number: give it a choice",
        ),
        ("tuning.space.warm_up.steps={uniform: [40, 80]}", "warm_up.steps is no key of `training`"),
        ("tuning.space={}", "nothing to search"),
    ],
)
def test_a_space_that_cannot_be_searched_is_one_line_with_key_and_fix(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    told: str,
    said: str,
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
            told,
        ],
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    error = capsys.readouterr().err
    assert (
        ended.value.code == 2
        and error.startswith("error: ")
        and len(error.splitlines()) == 1
        and said in error
    ), error
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["embedded", "small", "gpu", "cluster"])
def test_every_profile_that_we_ship_has_a_space_that_it_takes_itself(name: str) -> None:
    profile = load_profile(name)
    assert check_search_space(profile) and own_point(profile)


@pytest.mark.parametrize(
    "algorithm", [name for name, algorithm in ALGORITHMS.items() if algorithm.clips]
)
@pytest.mark.parametrize("name", ["embedded", "gpu"])
def test_an_algorithm_that_clips_by_itself_is_searched_without_the_clip(
    tmp_path: Path, name: str, algorithm: str
) -> None:
    profile = load_profile(name, [f"training.algorithm={algorithm}"])
    assert set(profile.tuning.space) - set(check_search_space(profile)) == {
        "training.clip"
    } and own_point(profile)
    said = StringIO()
    write_sweep(tmp_path / "sweep.yaml", profile, name, [], Console(file=said))
    assert (
        "training.clip" not in yaml.safe_load((tmp_path / "sweep.yaml").read_text())["parameters"]
    )
    assert (
        f"training.clip is left out of the search: {algorithm} clips by a rule of its own."
        in said.getvalue()
    )


def test_a_search_of_the_clip_alone_is_refused_where_the_algorithm_clips_by_itself() -> None:
    profile = load_profile(
        "small", ["training.algorithm=dapo", "tuning.space={training.clip: {choice: [0.1, 0.2]}}"]
    )
    with pytest.raises(
        ProfileError,
        match="dapo clips by a rule of its own, and nothing else is in it: give other keys",
    ):
        check_search_space(profile)


def test_a_space_may_be_written_by_sections_or_by_whole_keys() -> None:
    spans = {
        "training.clip": Span(uniform=(0.1, 0.3)),
        "training.scale.updates": Span(choice=(1, 2)),
    }
    nested = {
        "training": {"clip": {"uniform": [0.1, 0.3]}, "scale": {"updates": {"choice": [1, 2]}}}
    }
    assert Tuning.model_validate({"space": nested}).space == spans == Tuning(space=spans).space


@pytest.mark.slow
def test_what_is_searched_is_no_part_of_what_it_is_searched_on() -> None:
    assert study_id(Profile(), "a") == study_id(Profile(tuning=Tuning(trials=3)), "a")


@pytest.mark.parametrize("name", ["embedded", "gpu"])
def test_the_sweep_is_one_that_wandb_takes(tmp_path: Path, name: str) -> None:
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
        "nothing is left for W&B to guess"
    )
    assert list(written["parameters"]) == list(profile.tuning.space)


def test_a_schema_that_takes_anything_would_show() -> None:
    told = sweep(load_profile("small"), "small", [])
    for broken in (
        {"method": "bays"},
        {"early_terminate": {"type": "asha"}},
        {"parameters": {"a": {"distribution": "uniform", "min": 0.1}}},
    ):
        assert list(jsonschema.Draft7Validator(SCHEMA).iter_errors(told | broken))


def test_a_whole_number_is_a_whole_number_in_the_sweep_too() -> None:
    profile = Profile(tuning=Tuning(space={"training.group_size": Span(uniform=(4, 8))}))
    assert sweep(profile, "embedded", [])["parameters"] == {
        "training.group_size": {"distribution": "int_uniform", "min": 4, "max": 8}
    }


def test_what_a_sweeps_agent_runs_is_a_training_that_we_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = sweep(load_profile("small"), "small", ["training.steps=4"])
    drawn = [
        f"{key}={span.get('max', span.get('values', [0])[-1])}"
        for key, span in told["parameters"].items()
    ]
    monkeypatch.setenv("RATCHET_SET", "")
    monkeypatch.setattr(sys, "argv", [*told["command"][:-1], "--show", *drawn])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().out
    assert ended.value.code == 0
    for override in (
        "optim.lr=0.0006",
        "actor.entropy_coeff=0.01",
        "actor.clip_ratio_high=0.3",
        "rollout.temperature=1.2",
        "total_training_steps=4",
    ):
        assert override in said
    assert "ppo_mini_batch_size=4" in said and "kl_loss_coef=0.01" in said


def test_a_trial_is_known_by_its_point_and_a_failed_one_is_tried_again(tmp_path: Path) -> None:
    told = Trials(tmp_path / "tuning", base(tmp_path))
    assert told.begin({"training.clip": 0.1}) == (1, True) and told.begin(
        {"training.clip": 0.3}
    ) == (2, True)
    told.job(2).path.mkdir(parents=True)
    (told.job(2).path / "trial.log").write_text("a warning\nerror: no memory\n")
    assert told.fail(2) == "no memory" and told.failed() == [2]
    again = Trials(tmp_path / "tuning", base(tmp_path))
    assert (
        again.begin({"training.clip": 0.3}) == (2, False)
        and again.failed() == []
        and len(again.points()) == 2
    )


def test_a_trial_that_came_to_its_end_was_not_ended_for_being_worse(tmp_path: Path) -> None:
    told = Trials(tmp_path / "tuning", base(tmp_path))
    for number, clip in enumerate((0.1, 0.3), 1):
        told.begin({"training.clip": clip})
        folder = told.job(number).path
        folder.mkdir(parents=True)
        rows = [
            {
                "step": step,
                "data": {"val-core/embedded/acc/mean@1": step / 100, "timing_s/step": 60.0},
            }
            for step in (0, 5, 10)
        ]
        (folder / "metrics-001.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (told.job(1).path / "done.json").write_text("{}")
    assert not told.end(1, 10) and told.end(2, 5) and told.ended() == [1, 2]
    first, second = told.outcomes()
    assert (first.best, first.best_step, first.end) == (0.1, 10, "all steps")
    assert (second.best, second.best_step, second.end) == (
        0.05,
        5,
        "others were better at step 5",
    ), "what it did after that is not its result"
    assert told.best() == first


def test_the_line_at_the_end_is_one_that_ratchet_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    point = {
        "training.learning_rate": 1.2e-05,
        "training.scale.updates": 2,
        "training.kl_in": "reward",
    }
    monkeypatch.setenv(
        "RATCHET_SET", "training.steps=4\ntuning.trials=3\ntraining.learning_rate=1.0"
    )
    words = shlex.split(line(Outcome(1, point, 0.1, 2, 4, 1.0, ""), Settings.read("small")))
    assert words[:4] == ["ratchet", "train", "--profile", "small"]
    monkeypatch.setenv("RATCHET_SET", "\n".join(words[5::2]))
    training = Settings.read("small").profile.training
    assert (training.learning_rate, training.scale.updates, training.kl_in, training.steps) == (
        1.2e-05,
        2,
        "reward",
        4,
    )


def test_a_key_of_another_section_is_refused_though_it_exists() -> None:
    with pytest.raises(ProfileError, match=r"seed is no key of `training`"):
        check_search_space(Profile(tuning=Tuning(space={"seed": Span(uniform=(1, 2))})))


def test_a_change_is_written_as_the_command_line_reads_it() -> None:
    assert [change("a", value) for value in (1e-05, True, "reward", 2)] == [
        "a=1e-05",
        "a=true",
        "a=reward",
        "a=2",
    ]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_search_that_was_killed_goes_on_and_trains_nothing_twice(tmp_path: Path) -> None:
    """Real Ray Tune, Optuna and ASHA; a trial is a process that writes metrics without a model."""
    folder = tmp_path / "a home"
    command = [sys.executable, toy_search.__file__, str(folder)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with subprocess.Popen(
        [*command, "5"], env=environment, start_new_session=True, stdout=subprocess.PIPE
    ) as killed:
        try:
            while len(toy_search.steps_done(folder)) < 7:
                assert killed.poll() is None
                time.sleep(0.1)
        finally:
            killed.send_signal(signal.SIGKILL)
    assert 0 < len(toy_search.ended(folder)) < 5
    said = subprocess.run(
        [*command, "5"], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert len(toy_search.ended(folder)) == 5 and "Best: trial" in said
    more = subprocess.run(
        [*command, "6"], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert len(toy_search.ended(folder)) == 6 and "5 of 6 trials there" in more
    done = toy_search.steps_done(folder)
    assert len(done) == len(set(done)), "a step was done twice"
    assert "others were better" in more, "a search without early ends shows nothing of ASHA"
