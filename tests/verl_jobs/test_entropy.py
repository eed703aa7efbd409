"""The adaptive weight of the entropy: its rule, and a real training that it changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from resources.config.profile import Profile
from tests.journeys.test_examples import train_tiny
from verl_jobs.config.training import MAX_ENTROPY, Training
from verl_jobs.job import metrics
from verl_jobs.trainer.checkpoints import STATE, restore_settings
from verl_jobs.trainer.entropy import CHANGE, WEIGHT, Entropy

ENTROPIES = st.lists(st.floats(0, 5), max_size=80)


@given(ENTROPIES, st.floats(0, MAX_ENTROPY), st.floats(0.01, 5))
def test_the_weight_stays_in_its_bounds_and_counts_only_below_the_target(
    entropies: list[float], start: float, target: float
) -> None:
    controller = Entropy(start, target)
    for entropy in entropies:
        before, controller = controller.coefficient, controller.after(entropy)
        assert 0 <= controller.coefficient <= MAX_ENTROPY
        assert abs(controller.coefficient - before) <= CHANGE * (1 + 1e-9)
        assert (controller.coefficient >= before) == (entropy < target) or before in (
            0,
            MAX_ENTROPY,
        )
        assert controller.weight(entropy) == (controller.coefficient if entropy < target else 0)


@given(ENTROPIES, ENTROPIES, st.floats(0.01, 5))
def test_a_controller_restored_from_its_coefficient_continues_the_same(
    before: list[float], after: list[float], target: float
) -> None:
    whole = Entropy(0.0, target)
    for entropy in before:
        whole = whole.after(entropy)
    restored = Entropy(json.loads(json.dumps(whole.coefficient)), target)
    for entropy in after:
        whole, restored = whole.after(entropy), restored.after(entropy)
    assert whole == restored


def test_a_start_above_the_most_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"at most 0\.005, got 0\.01"):
        Training(entropy_target=0.2, entropy_coefficient=0.01)


def test_a_target_is_refused_where_verl_measures_no_entropy_a_token() -> None:
    with pytest.raises(ValidationError, match="nats a token"):
        Training(entropy_target=0.2, algorithm="dr_grpo")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_below_the_target_the_weight_rises_with_each_step_and_is_saved(tmp_path: Path) -> None:
    training = Training(
        threads=1, steps=2, save_every=2, problems_per_step=4, group_size=2, answer_tokens=16,
        entropy_target=20.0,
    )  # fmt: skip
    job = train_tiny(training, Profile().reward, tmp_path)
    rows = [row for row in metrics(tmp_path) if WEIGHT in row]
    assert [row[WEIGHT] for row in rows] == pytest.approx([CHANGE, 2 * CHANGE])
    # all rewards of an untrained model are equal: the entropy alone changes its weights
    assert all(row["actor/grad_norm"] > 0 and row["actor/entropy_loss"] > 0 for row in rows)
    saved = tmp_path / "saves" / "global_step_2" / STATE
    assert json.loads(saved.read_text()) == {"entropy_coefficient": pytest.approx(2 * CHANGE)}
    assert restore_settings(job, 2).training.entropy_coefficient == pytest.approx(2 * CHANGE)
