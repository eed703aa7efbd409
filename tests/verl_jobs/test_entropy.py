"""The adaptive weight of the entropy: its rule; test_short_training.py has it in a training."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from verl_jobs.config.training import MAX_ENTROPY, Training
from verl_jobs.trainer.entropy import CHANGE, Entropy

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
