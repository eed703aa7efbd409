"""The choices of `ratchet train --base`; complete runs are in tests/journeys/test_named_base.py."""

from __future__ import annotations

import pytest

from cli.train.own_base import learning_rate
from resources.capacity import shape_of_start
from resources.config.load import load_profile
from resources.config.profile import Profile

SMOLLM2_135M = 134_515_008  # parameters


def test_the_learning_rate_for_a_size_is_that_of_the_profiles_that_were_measured() -> None:
    tiny, pretrained = Profile(), load_profile("pretrained")
    shape = shape_of_start(tiny)
    assert shape
    assert learning_rate(shape.parameters) == pytest.approx(tiny.training.learning_rate, rel=0.1)
    assert learning_rate(SMOLLM2_135M) == pytest.approx(pretrained.training.learning_rate, rel=0.01)
