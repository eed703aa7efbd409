"""Parts of charts: axes have round numbers, and every value is where its axis says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from artifacts.charts import Axes, padded, row_axes, svg, text, ticks


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (-0.31, 0.52, [-0.2, 0, 0.2, 0.4]),
        (3, 3, [3]),
        (5, -1, [0, 2, 4]),
    ],
)
def test_an_axis_has_round_numbers(first: float, last: float, expected: list[float]) -> None:
    assert ticks(first, last, most=5) == pytest.approx(expected)


def test_steps_are_whole() -> None:
    assert ticks(0, 2.2, whole=True) == [0, 1, 2]


def test_a_value_is_between_the_edges_of_its_panel() -> None:
    axes = Axes((0, 10), (-1, 1), top=20, height=100, left=50, right=250)
    corners = [axes.at(0, 1), axes.at(10, -1), axes.at(5, 0)]
    assert corners == [(50, 20), (250, 120), (150, 70)]
    rows = row_axes(["a", "b"], (0, 1), 0, 30)
    assert (rows.at(0, 0)[1], rows.at(0, 1)[1]) == (15, 45)


def test_one_value_and_no_value_have_a_range() -> None:
    assert padded([2.0]) == (1.5, 2.5)
    assert padded([]) == (-0.5, 0.5)
    assert padded([0.0, float("nan"), 1.0], 0.1) == pytest.approx((-0.1, 1.1))


def test_hostile_text_stays_text() -> None:
    root = ElementTree.fromstring(svg([text(0, 0, "<script>&")], 10))
    assert [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")] == ["<script>&"]
