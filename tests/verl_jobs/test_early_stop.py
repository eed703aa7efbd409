"""Early stopping: a diverging training is stopped with a reason, a stable one is not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rewards.watch import GAP, OVERFIT
from verl_jobs.config.algorithms import Name
from verl_jobs.config.checkpoints import StopSettings
from verl_jobs.config.training import Training
from verl_jobs.job import VALIDATION
from verl_jobs.trainer.early_stop import per_token, stop_reason


def run(steps: int = 20, **columns: Any) -> list[dict[str, Any]]:
    """Return a stable history; a column is a function of the step, absent where it is None."""
    calm: dict[str, Any] = {
        "actor/pg_loss": lambda t: 0.1,
        "actor/grad_norm": lambda t: 0.05,
        "critic/score/mean": lambda t: 0.3 + t / 100,
        "actor/entropy": lambda t: 0.05,
        "actor/ppo_kl": lambda t: 0.001,
        VALIDATION: lambda t: 0.3 + t / 100 if t % 5 == 0 else None,
    }
    rows: list[dict[str, Any]] = [{"step": 0, VALIDATION: 0.3}]
    for t in range(1, steps + 1):
        values = {key: rule(t) for key, rule in (calm | columns).items()}
        rows.append(
            {"step": t} | {key: value for key, value in values.items() if value is not None}
        )
    return rows


def test_a_stable_training_is_never_stopped() -> None:
    history = run(40)
    assert all(
        stop_reason(history[:length], StopSettings(patience=3)) is None
        for length in range(len(history) + 1)
    )


@pytest.mark.parametrize("key", ["actor/pg_loss", "actor/grad_norm", "critic/score/mean"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_nan_or_infinity_stops_the_training(key: str, value: float) -> None:
    assert (
        stop_reason(run(8, **{key: lambda t: value if t == 8 else 0.1}), StopSettings())
        == f"{key} is {value} at step 8"
    )


def test_a_large_kl_stops_the_training_but_one_outlier_does_not() -> None:
    assert "KL: actor/kl_loss" in (
        stop_reason(run(12, **{"actor/kl_loss": lambda t: 0.06 * t}), StopSettings(kl=0.5)) or ""
    )
    assert (
        stop_reason(
            run(12, **{"actor/kl_loss": lambda t: 1.2 if t == 11 else 0.01}), StopSettings(kl=0.5)
        )
        is None
    )


def test_a_collapsed_entropy_stops_the_training_unless_disabled() -> None:
    history = run(20, **{"actor/entropy": lambda t: 0.5 * 0.7**t})
    assert "entropy collapsed: 0.2" in (stop_reason(history, StopSettings()) or "")
    assert stop_reason(history, StopSettings(entropy=0.0)) is None


def test_a_growing_gap_to_hidden_tests_stops_the_training() -> None:
    assert "reward hacking" in (
        stop_reason(
            run(30, **{GAP: lambda t: 0.01 * t, OVERFIT: lambda t: 0.02 * t}), StopSettings()
        )
        or ""
    )


@pytest.mark.parametrize("algorithm", ["dr_grpo", "grpo"])
def test_entropy_and_kl_are_compared_per_token(
    algorithm: Name,
) -> None:
    """Only the length of completions falls, and dr_grpo's summed figures fall with it."""
    training = Training(algorithm=algorithm, answer_tokens=100)
    lengths = [100.0 - 4.5 * step for step in range(20)]
    shorter = [
        {
            "step": at,
            "response_length/mean": mean,
            "actor/entropy": 0.5 * mean / 100,
            "actor/kl_loss": 0.4 * mean / 100,
        }
        for at, mean in enumerate(lengths, 1)
    ]
    rows = per_token(shorter, training)
    assert "entropy collapsed" in (stop_reason(shorter, StopSettings(entropy=0.3)) or "")
    assert (stop_reason(rows, StopSettings(entropy=0.3)) is None) == (algorithm == "dr_grpo")
    if algorithm == "dr_grpo":
        assert all(
            row["actor/kl_loss"] == pytest.approx(0.4)
            and row["actor/entropy"] == pytest.approx(0.5)
            for row in rows
        )
        collapsed = [
            row | {"response_length/mean": 50.0, "actor/entropy": 0.5 * 0.7 ** row["step"]}
            for row in shorter
        ]
        assert "entropy collapsed" in (
            stop_reason(per_token(collapsed, training), StopSettings()) or ""
        )


def test_patience_counts_validations_since_the_best() -> None:
    history = run(30, **{VALIDATION: lambda t: (0.6 if t == 10 else 0.4) if t % 5 == 0 else None})
    text = stop_reason(history, StopSettings(patience=4)) or ""
    assert all(part in text for part in ("no progress", "4", "60.0 %", "step 10"))
    assert stop_reason(history, StopSettings(patience=5)) is None
    assert stop_reason(history, StopSettings(patience=0)) is None
