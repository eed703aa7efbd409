"""The layout of a training on the remaining nodes of a Ray."""

from __future__ import annotations

import pytest

from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.trainer.layout import largest_layout, rank_counts


@pytest.mark.parametrize(
    ("gpus", "ranks", "nodes"),
    [
        ([8, 8], 16, 2),  # as configured
        ([16], 16, 1),  # one larger machine
        ([8], 8, 1),
        ([0, 8], 8, 1),  # a head without GPUs
        ([8, 4], 8, 2),  # four on each
        ([6], 4, 1),  # a divisor of 16, to which checkpoints can be resharded
        ([1], 1, 1),
    ],
)
def test_the_remaining_gpus_hold_as_many_ranks_as_possible(
    gpus: list[int], ranks: int, nodes: int
) -> None:
    layout = largest_layout(
        Training(ranks=16, problems_per_step=16, scale=ScaleSettings(nodes=2)), gpus
    )
    assert layout
    assert (layout.ranks, layout.scale.nodes) == (ranks, nodes)


def test_no_layout_exists_without_gpus() -> None:
    assert largest_layout(Training(ranks=2, scale=ScaleSettings(nodes=2)), [0, 0]) is None


def test_hybrid_shards_keep_their_number_of_ranks() -> None:
    assert rank_counts(Training(ranks=4, problems_per_step=8, scale=ScaleSettings(shards=2))) == [4]
    assert (
        largest_layout(Training(ranks=4, problems_per_step=8, scale=ScaleSettings(shards=2)), [2])
        is None
    )
