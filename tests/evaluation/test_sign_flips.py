"""The sign-flip test is exact: it agrees with McNemar's test and with scipy's permutation test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluation.statistics.hypothesis_tests import mcnemar
from evaluation.statistics.sign_flips import sign_flip_test

differences = st.lists(st.integers(-10, 10), min_size=1, max_size=40).map(
    lambda counts: [count / 10 for count in counts]
)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_of_single_completions_it_is_mcnemars_test(won: int, lost: int, same: int) -> None:
    ours = sign_flip_test([1.0] * won + [-1.0] * lost + [0.0] * (same + 1))
    assert ours == pytest.approx(mcnemar(won, lost))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-10, 10), min_size=2, max_size=11))
def test_it_agrees_with_scipy(counts: list[int]) -> None:
    theirs = stats.permutation_test(
        (np.array(counts),),
        lambda values, axis: values.sum(axis),
        permutation_type="samples",
        alternative="greater",
        n_resamples=2**12,  # all patterns
    )
    assert sign_flip_test([count / 10 for count in counts]).better == pytest.approx(theirs.pvalue)


@given(differences)
def test_swapping_the_models_swaps_the_p_values(values: list[float]) -> None:
    ours, theirs = sign_flip_test(values), sign_flip_test([-value for value in values])
    assert (ours.better, ours.worse) == pytest.approx((theirs.worse, theirs.better))


@given(differences, st.data())
def test_clusters_are_flipped_as_a_whole(values: list[float], data: st.DataObject) -> None:
    clusters = [data.draw(st.sampled_from("abcde")) for _ in values]
    sums = [
        sum(value for value, name in zip(values, clusters, strict=True) if name == cluster)
        for cluster in sorted(set(clusters))
    ]
    assert sign_flip_test(values, clusters) == pytest.approx(sign_flip_test(sums))


def test_many_tasks_are_rounded_to_a_coarser_grid() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, 2000)
    z = values.sum() / np.sqrt((values**2).sum())
    assert sign_flip_test(values).better == pytest.approx(stats.norm.sf(z), abs=0.005)


def test_twenty_clusters_keep_the_level_of_one_percent() -> None:
    # Of 20 tasks each, a fifth of which are decided alike in a cluster, for each model.
    rng, clusters = np.random.default_rng(2), [str(i // 20) for i in range(400)]
    shown = single = 0
    for _ in range(400):
        chances = rng.beta(2, 2, (2, 20, 1))
        solved = (rng.random((2, 20, 20)) < chances).reshape(2, 400).astype(float)
        difference = solved[1] - solved[0]
        shown += sign_flip_test(difference, clusters).better <= 0.01
        single += sign_flip_test(difference).better <= 0.01
    assert shown <= 12 < single  # 3 %: 1 % and four standard errors
