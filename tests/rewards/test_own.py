"""A user's own reward: the templates pass unchanged; an invalid file gets a one-line error."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from rich.console import Console

from cli.reward import new, verify
from resources.settings import Settings
from rewards.battery_cases import CODE, MEDIAN
from rewards.composite import reward_hash
from rewards.config import RewardConfig
from rewards.own import Kind, OwnReward, RewardFileError, reward_of
from sandbox.protocol import Report, TestResult, Verdict

ACCEPTED = Report("job", Verdict.AC, (TestResult(Verdict.AC),))
REFERENCE = CODE["call"].reference


def written(folder: Path, body: str) -> Path:
    path = folder / "mine.py"
    path.write_text(
        f"TASK = 'code'\ndef reward(task, answer, report):\n    return {body}\n", encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(
    "task", [*(pytest.param(task, marks=pytest.mark.slow) for task in ("code", "math")), "qa"]
)
def test_a_template_passes_the_battery_as_it_is(tmp_path: Path, task: str) -> None:
    path = tmp_path / "my_reward.py"
    said = Console(record=True, width=200)
    assert new(task, path, said) == 0 and verify(path, Settings.read(), said) == 0, (
        said.export_text()
    )


def test_there_is_a_template_for_every_kind_of_task(tmp_path: Path) -> None:
    for task in get_args(Kind):
        assert (
            new(task, tmp_path / f"{task}.py", Console()) == 0
            and OwnReward(tmp_path / f"{task}.py").task == task
        )


def test_a_reward_that_pays_for_length_does_not_pass(tmp_path: Path) -> None:
    path = tmp_path / "longer.py"
    path.write_text(
        "TASK = 'qa'\ndef reward(task, answer, report):\n    return min(1.0, len(answer) / 100)\n"
    )
    said = Console(record=True, width=200)
    assert verify(path, Settings.read(), said) == 1 and "NOT passed" in said.export_text()


def test_a_profile_s_file_decides_and_has_a_hash_of_its_own(tmp_path: Path) -> None:
    config = RewardConfig(file=str(written(tmp_path, "{'score': 0.25, 'mine': 3}")))
    score = reward_of(config).score(MEDIAN, REFERENCE, ACCEPTED)
    assert (score.value, score.components, score.verdict) == (0.25, {"mine": 3.0}, Verdict.AC)
    before = reward_hash(config)
    written(tmp_path, "0.5")
    assert reward_hash(config) != before


def test_a_profile_takes_no_reward_for_questions(tmp_path: Path) -> None:
    new("qa", tmp_path / "facts.py", Console())
    with pytest.raises(RewardFileError, match="training is on programs"):
        reward_of(RewardConfig(file=str(tmp_path / "facts.py")))


def test_a_failure_of_the_judge_never_comes_to_the_file(tmp_path: Path) -> None:
    own = OwnReward(written(tmp_path, "1 / 0"))
    assert own.score(MEDIAN, REFERENCE, Report("job", Verdict.INFRA, ())).value is None


@pytest.mark.parametrize(
    "body", ["2.0", "None", "float('nan')", "True", "{'mine': 1.0}", "{'score': 'high'}"]
)
def test_a_value_that_is_none_is_named(tmp_path: Path, body: str) -> None:
    with pytest.raises(RewardFileError, match=r"mine.py: reward\(\) gave"):
        OwnReward(written(tmp_path, body)).score(MEDIAN, REFERENCE, ACCEPTED)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (", "cannot be imported"),
        ("", "TASK"),
        ("TASK = 'poetry'", "TASK"),
        ("TASK = 'qa'", "write a function"),
    ],
)
def test_a_file_that_is_no_reward_is_refused_with_the_mend(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(RewardFileError, match=said):
        OwnReward(tmp_path / "mine.py")


def test_a_file_that_is_not_there_is_told_how_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(RewardFileError, match="ratchet reward new"):
        OwnReward(tmp_path / "mine.py")
