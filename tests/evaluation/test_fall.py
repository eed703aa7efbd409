"""Falls of a share below its own earlier level."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.statistics.online.fall import fall_of

BASELINE, TOLERATED, ALPHA = 500, 0.05, 0.01


def test_before_the_baseline_is_complete_nothing_is_said() -> None:
    assert fall_of([True] * BASELINE, BASELINE, TOLERATED, ALPHA) is None


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_steady_share_hardly_ever_falls(share: float) -> None:
    draws = np.random.default_rng(1).random((200, 2000)) < share
    falls = [fall_of(row.tolist(), BASELINE, TOLERATED, ALPHA) for row in draws]
    assert sum(fall.shown for fall in falls if fall) <= 4  # 2 of 200 expected at most


def test_a_fall_of_twenty_points_is_shown_within_a_thousand_answers() -> None:
    rng = np.random.default_rng(2)
    before, after = rng.random((50, BASELINE)) < 0.6, rng.random((50, 1000)) < 0.4
    falls = [
        fall_of([*one, *other], BASELINE, TOLERATED, ALPHA)
        for one, other in zip(before.tolist(), after.tolist(), strict=True)
    ]
    assert sum(fall.shown for fall in falls if fall) >= 45


def test_a_long_good_time_does_not_hide_a_fall() -> None:
    rng = np.random.default_rng(3)
    good, bad = rng.random(BASELINE + 5000) < 0.6, rng.random(1500) < 0.4
    fall = fall_of([*good.tolist(), *bad.tolist()], BASELINE, TOLERATED, ALPHA)
    assert fall
    assert fall.shown
    assert fall.since < 0.45


def test_a_level_that_cannot_fall_further_shows_nothing() -> None:
    fall = fall_of([False] * 1000, BASELINE, TOLERATED, ALPHA)
    assert fall
    assert not fall.shown
