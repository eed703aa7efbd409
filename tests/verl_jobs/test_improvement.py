"""The correlation of review and improvement."""

from __future__ import annotations

import pytest

from verl_jobs.agents.improvement import improvement, values
from verl_jobs.agents.rollout import BONUS
from verl_jobs.samples import Sample


def sample(problem: int, control: float, commented: float) -> Sample:
    """Return a sample as verl_jobs/agents/loop.py writes it."""
    reward = (commented - control) / 2
    trace = {"correctness": commented - 0.1, "format": 0.1, BONUS: reward - commented}
    return Sample(f"p/{problem}", "", reward, "AC", 1.0, trace)


def test_control_and_correction_are_read_from_a_sample() -> None:
    assert values(sample(0, -0.8, 0.5)) == pytest.approx((-0.8, 0.5))


def test_comments_that_solve_every_program_correlate_fully() -> None:
    assert ": +1.00 (+1.00 to +1.00);" in improvement([sample(at, -1.0, 1.0) for at in range(4)])


def test_comments_without_effect_do_not_correlate() -> None:
    both = [sample(at, value, value) for at, value in enumerate((-1.0, 1.0, -1.0, 1.0))]
    assert ": +0.00 (" in improvement(both)


@pytest.mark.parametrize("samples", [[], [sample(0, 1.0, 1.0)]])
def test_without_a_difference_there_is_no_correlation(samples: list[Sample]) -> None:
    assert "none, the programs do not differ" in improvement(samples)
