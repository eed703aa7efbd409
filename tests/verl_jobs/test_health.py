"""An alarm for what is beyond its bound over the last steps, and none for what was not measured."""

from __future__ import annotations

from typing import Any

import pytest

from rewards.watch import LOST
from verl_jobs.metrics.health import LAST, alarms
from verl_jobs.samples import CUT


def steps(key: str, values: list[float]) -> list[dict[str, Any]]:
    return [{"step": at, key: value} for at, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (CUT, 0.44, "44% of the answers were cut by their length: raise training.answer_tokens"),
        (
            "training/rollout_probs_diff_mean",
            0.05,
            "differ by 0.050 in a token's probability: set training.importance_cap",
        ),
        (LOST, 2.0, "2.0 answers a step had no verdict"),
    ],
)
def test_what_is_beyond_its_bound_is_said_with_its_mend(key: str, value: float, said: str) -> None:
    [alarm] = alarms(steps(key, [value] * LAST))
    assert said in alarm


def test_what_was_bad_and_is_well_again_is_not_said() -> None:
    assert alarms(steps(CUT, [1.0] * 10 + [0.0] * LAST)) == []


def test_an_entropy_that_falls_is_said_before_it_ends_the_training() -> None:
    from verl_jobs.config.training import Stop
    from verl_jobs.trainer.early_stop import reason

    falling = steps("actor/entropy", [0.5 * 0.8**at for at in range(12)])
    [alarm] = alarms(falling)
    assert (
        "the entropy fell to 21% of its first 5 steps" in alarm and reason(falling, Stop()) is None
    )
    assert alarms(steps("actor/entropy", [0.5] * 12)) == [] and alarms(falling[:9]) == []


def test_what_was_not_measured_gives_no_alarm() -> None:
    assert alarms([{"step": 1}]) == [] and alarms([]) == []
