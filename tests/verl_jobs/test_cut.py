"""Which answers count as cut by their length: those of which the engine says so, else those that are as long as an answer may be."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow  # importing verl takes longer than all of this


@pytest.mark.parametrize(
    ("told", "tokens", "cut"),
    [
        ({"stop_reason": "length"}, 3, True),  # of a conversation, whose programs have a bound each
        ({"stop_reason": "completed"}, 5, False),  # its last token was the end
        ({}, 5, True),  # of an agent loop that does not say
        ({}, 4, False),
    ],
)
def test_an_answer_is_cut_where_its_length_ended_it(
    told: dict[str, str], tokens: int, cut: bool
) -> None:
    from verl_jobs.trainer.replay_buffer import WatchedReplayBuffer

    buffer = WatchedReplayBuffer.__new__(WatchedReplayBuffer)
    buffer.longest = 5
    assert buffer._cut(told, [0.0] * tokens) is cut
