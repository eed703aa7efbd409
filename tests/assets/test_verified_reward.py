"""A reward must pass the battery before it trains, and passports record the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifacts.integrity import CorruptArtifact
from artifacts.manifest import Manifest
from assets.verified_reward import (
    CONTROL,
    UnverifiedReward,
    battery_stamp,
    battery_text,
    store_result,
    unverified_by,
)
from resources.home import Home
from resources.run_context import RunContext
from resources.settings import Settings
from rewards.battery.attempts import BatteryRow
from rewards.battery.battery import BatteryResult
from rewards.config import RewardConfig

GOOD = BatteryResult(True, (BatteryRow("a", True, ""),), "good")
BAD = BatteryResult(False, (BatteryRow("a", True, ""), BatteryRow("bounds", False, "2")), "bad")


def test_an_unverified_reward_may_not_train(tmp_path: Path) -> None:
    with pytest.raises(UnverifiedReward, match="was not run"):
        battery_stamp(Home(tmp_path), RewardConfig())


@pytest.mark.slow
def test_a_verified_reward_trains_and_records_its_hash(tmp_path: Path) -> None:
    store_result(Home(tmp_path), RewardConfig(), GOOD)
    assert battery_stamp(Home(tmp_path), RewardConfig()) == "good"
    with pytest.raises(UnverifiedReward):
        battery_stamp(Home(tmp_path), RewardConfig(sparse=False))  # another reward


def test_a_failing_reward_trains_only_if_forced_and_is_marked(tmp_path: Path) -> None:
    store_result(Home(tmp_path), RewardConfig(), BAD)
    with pytest.raises(UnverifiedReward, match="bounds"):
        battery_stamp(Home(tmp_path), RewardConfig())
    assert battery_stamp(Home(tmp_path), RewardConfig(unverified=True)) == "unverified bad"


def test_a_result_that_was_changed_lets_no_reward_train(tmp_path: Path) -> None:
    home = Home(tmp_path)
    store_result(home, RewardConfig(), BAD)
    [path] = home.batteries.iterdir()
    path.write_text(path.read_text(encoding="utf-8").replace("false", "true"), encoding="utf-8")
    with pytest.raises(CorruptArtifact, match=path.name):
        battery_stamp(home, RewardConfig())


def test_the_control_reward_is_marked_as_one(tmp_path: Path) -> None:
    assert battery_stamp(Home(tmp_path), RewardConfig(kind="random")) == CONTROL


def test_the_flag_reaches_every_process_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not RunContext.of(Settings(Home(tmp_path))).profile.reward.unverified
    monkeypatch.setenv("RATCHET_UNVERIFIED", "1")
    assert Settings.read().profile.reward.unverified
    run_context = RunContext.of(Settings(Home(tmp_path), unverified=True))
    assert run_context.profile.reward == RewardConfig(unverified=True)
    assert run_context.as_settings.profile.reward == RewardConfig(unverified=True)


def test_a_passport_without_a_mark_is_clean() -> None:
    manifest = Manifest(
        kind="checkpoints",
        name="x",
        key="k",
        content_hash="h",
        facts={"unverified": ["chain-0001"]},
    )
    assert unverified_by(manifest) == ["chain-0001"]
    assert unverified_by(manifest.model_copy(update={"facts": {}})) == []


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("0123456789abcdef", "the reward passed the exploit battery (hash 0123456789ab)"),
        ("unverified 0123456789abcdef", "unverified 0123456789abcdef"),
        (CONTROL, CONTROL),
        ("", "not run"),
    ],
)
def test_a_checkpoints_page_says_whether_the_battery_passed(stamp: str, text: str) -> None:
    assert battery_text(stamp) == text
