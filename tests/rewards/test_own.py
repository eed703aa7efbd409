"""A user's own reward: the templates pass unchanged; an invalid file gets a one-line error."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from rich.console import Console

from cli.reward import new, verify
from resources.settings import Settings
from rewards.battery.cases import CODE, MEDIAN
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


@pytest.mark.slow
@pytest.mark.parametrize("task", get_args(Kind))
def test_an_unchanged_template_passes_the_battery(tmp_path: Path, task: str) -> None:
    path = tmp_path / "my_reward.py"
    console = Console(record=True, width=200)
    assert new(task, path, console) == 0, console.export_text()
    assert verify(path, Settings.read(), console) == 0, console.export_text()


def test_every_kind_of_task_has_a_template(tmp_path: Path) -> None:
    for task in get_args(Kind):
        assert new(task, tmp_path / f"{task}.py", Console()) == 0
        assert OwnReward(tmp_path / f"{task}.py").task == task


def test_a_custom_reward_for_length_fails_the_battery(tmp_path: Path) -> None:
    path = tmp_path / "longer.py"
    path.write_text(
        "TASK = 'qa'\ndef reward(task, answer, report):\n    return min(1.0, len(answer) / 100)\n"
    )
    console = Console(record=True, width=200)
    assert verify(path, Settings.read(), console) == 1
    assert "FAILED" in (text := console.export_text())
    assert "exploit: search, " in text


def test_a_reward_file_decides_and_has_its_own_hash(tmp_path: Path) -> None:
    config = RewardConfig(file=str(written(tmp_path, "{'score': 0.25, 'mine': 3}")))
    score = reward_of(config).score(MEDIAN, REFERENCE, ACCEPTED)
    assert (score.value, score.components, score.verdict) == (0.25, {"mine": 3.0}, Verdict.AC)
    before = reward_hash(config)
    written(tmp_path, "0.5")
    assert reward_hash(config) != before


def test_a_reward_for_questions_is_refused_in_training(tmp_path: Path) -> None:
    new("qa", tmp_path / "facts.py", Console())
    with pytest.raises(RewardFileError, match=r"facts\.py"):
        reward_of(RewardConfig(file=str(tmp_path / "facts.py")))


def test_a_reward_file_never_sees_an_infra_report(tmp_path: Path) -> None:
    own = OwnReward(written(tmp_path, "1 / 0"))
    assert own.score(MEDIAN, REFERENCE, Report("job", Verdict.INFRA, ())).value is None


@pytest.mark.parametrize(
    "body", ["2.0", "None", "float('nan')", "True", "{'mine': 1.0}", "{'score': 'high'}"]
)
def test_an_invalid_reward_value_is_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(RewardFileError, match=r"mine\.py: reward\(\)"):
        OwnReward(written(tmp_path, body)).score(MEDIAN, REFERENCE, ACCEPTED)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x = (", r"mine\.py"),
        ("", "TASK"),
        ("TASK = 'poetry'", "TASK"),
        ("TASK = 'qa'", "function"),
    ],
)
def test_an_invalid_reward_file_is_refused(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(RewardFileError, match=error):
        OwnReward(tmp_path / "mine.py")


def test_a_missing_reward_file_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(RewardFileError, match="ratchet reward new"):
        OwnReward(tmp_path / "mine.py")
