"""The first sentence of a decision's summary is about the check that decided."""

from __future__ import annotations

import re

import pytest

from evaluation.promotion.checks import Facts
from evaluation.promotion.gate import decide
from evaluation.promotion.policy import Policy
from evaluation.promotion.summary import decision_summary
from evaluation.scorecard import Scorecard
from tests.evaluation.scorecards import sample, scorecard


def card(who: str, solved: range, tags: tuple[str, ...] = (), tagged: int = 0) -> Scorecard:
    samples = (sample(f"t/{i}", i in solved, tags=tags if i < tagged else ()) for i in range(400))
    return scorecard(who, samples)


OLD = card("old", range(100))


@pytest.mark.parametrize(
    ("new", "facts", "sentence"),
    [
        (
            card("new", range(150)),
            Facts(),
            r"It is better\b.*400 tasks.*\b150\b.*champion.*\b100\b",
        ),
        (
            card("new", range(50)),
            Facts(),
            r"It is worse\b.*400 tasks.*\b50\b.*champion.*\b100\b",
        ),
        (
            card("new", range(1, 101)),
            Facts(),
            r"It was not shown to be better\b.*75 of 100 cases",
        ),
        (
            card("new", range(100)),
            Facts(),
            r"It was not shown to be better\b.*400 tasks.*\b100\b.*2\.3 points",
        ),
        (card("old", range(100)), Facts(), "It is the champion itself"),
        (
            card("new", range(150)),
            Facts(unverified=("new",)),
            r"It was trained with a reward.*Its score is better",
        ),
    ],
)
def test_the_summary_starts_with_the_deciding_check(
    new: Scorecard, facts: Facts, sentence: str
) -> None:
    assert re.match(
        sentence, decision_summary(decide(OLD, new, facts=facts).model_dump(mode="json"))
    )


def test_the_tag_with_the_most_losses_is_named() -> None:
    before, after = (
        card("old", range(100), ("loops",), 60),
        card("new", range(40, 250), ("loops",), 60),
    )
    text = decision_summary(decide(before, after).model_dump(mode="json"))
    assert re.search(r"loops of heldout.*100\.0.*33\.3 %", text)


def test_a_gain_below_the_minimum_is_described_as_too_small() -> None:
    text = decision_summary(
        decide(OLD, card("new", range(112)), Policy(minimum_gain=0.05)).model_dump(mode="json")
    )
    assert re.match("It is better, but too little", text)
