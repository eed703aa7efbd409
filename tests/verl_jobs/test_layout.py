"""What is left of a Ray holds as much of a training as may be."""

from __future__ import annotations

import pytest

from verl_jobs.config.scale import Scale
from verl_jobs.config.training import Training
from verl_jobs.trainer.layout import fewer, laid


@pytest.mark.parametrize(
    ("gpus", "ranks", "nodes"),
    [
        ([8, 8], 16, 2),  # as told
        ([16], 16, 1),  # one larger machine
        ([8], 8, 1),
        ([0, 8], 8, 1),  # a head without GPUs
        ([8, 4], 8, 2),  # four each
        ([6], 4, 1),  # a divisor of the former number, for its saves are cut anew
        ([1], 1, 1),
    ],
)
def test_what_is_left_holds_as_many_ranks_as_may_be(
    gpus: list[int], ranks: int, nodes: int
) -> None:
    found = laid(Training(ranks=16, problems_per_step=16, scale=Scale(nodes=2)), gpus)
    assert found and (found.ranks, found.scale.nodes) == (ranks, nodes)


def test_nothing_fits_where_no_gpu_is_left() -> None:
    assert laid(Training(ranks=2, scale=Scale(nodes=2)), [0, 0]) is None


def test_copies_of_shards_keep_their_number_of_ranks() -> None:
    assert fewer(Training(ranks=4, problems_per_step=8, scale=Scale(shards=2))) == [4]
    assert laid(Training(ranks=4, problems_per_step=8, scale=Scale(shards=2)), [2]) is None
