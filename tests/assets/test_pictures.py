"""Plots that Dagster's pages show."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from assets.pictures import REWARD, training_picture
from verl_jobs.job import VALIDATION

SHOWN = 1000  # characters of Markdown that Dagster shows without a click

values = st.floats(-1, 1)


@settings(max_examples=50)
@given(st.lists(st.tuples(values, st.none() | values), min_size=1, max_size=400))
def test_a_trainings_curve_is_shown_without_a_click(
    steps: list[tuple[float, float | None]],
) -> None:
    history = [
        {"step": 10_000 + step, REWARD: reward} | ({} if share is None else {VALIDATION: share})
        for step, (reward, share) in enumerate(steps)
    ]
    text = training_picture(history)
    assert len(text) < SHOWN
    picture = base64.b64decode(text.partition("base64,")[2].rstrip(")"))
    assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_a_training_without_a_step_has_no_curve() -> None:
    assert training_picture([{"step": 0, VALIDATION: 0.5}]) == "no step is done yet"
