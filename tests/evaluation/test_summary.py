"""The summary of a decision: its first sentence is about the check that decided."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evaluation.promotion.checks import Facts
from evaluation.promotion.gate import decide
from evaluation.promotion.policy import Policy
from evaluation.promotion.summary import in_short
from evaluation.scorecard import Sample, Scorecard


def card(who: str, solved: range, tags: tuple[str, ...] = (), tagged: int = 0) -> Scorecard:
    samples = tuple(
        Sample(
            task_id=f"t/{i}",
            answer="",
            program="",
            verdict="AC" if i in solved else "WA",
            tags=tags if i < tagged else (),
        )
        for i in range(400)
    )
    return Scorecard(
        benchmark="heldout",
        benchmark_version="v",
        harness_version="1",
        checkpoint=who,
        checkpoint_hash=who,
        sampling={},
        samples=samples,
        isolation="none",
    )


OLD = card("old", range(100))


@pytest.mark.parametrize(
    ("new", "facts", "said"),
    [
        (
            card("new", range(150)),
            Facts(),
            "It is better: of 400 tasks it solved 150, where the champion before it solved 100",
        ),
        (
            card("new", range(50)),
            Facts(),
            "It is worse: of 400 tasks it solved 50, where the champion before it solved 100",
        ),
        (
            card("new", range(1, 101)),
            Facts(),
            (
                "It was not shown to be better: .* luck alone makes such a difference in about "
                "75 of 100 cases"
            ),
        ),
        (
            card("new", range(100)),
            Facts(),
            (
                "It was not shown to be better: of 400 tasks it solved the very same 100 .* "
                "often miss a gain below 2.3 points"
            ),
        ),
        (card("old", range(100)), Facts(), "It is the champion itself"),
        (
            card("new", range(150)),
            Facts(unverified=("new",)),
            "It was trained with a reward that pays for answers that cheat.* Its score is better",
        ),
    ],
)
def test_what_decided_is_said_first(new: Scorecard, facts: Facts, said: str) -> None:
    assert re.match(said, in_short(decide(OLD, new, facts=facts).model_dump(mode="json")))


def test_the_kind_of_task_that_it_lost_most_on_is_named() -> None:
    before, after = (
        card("old", range(100), ("loops",), 60),
        card("new", range(40, 250), ("loops",), 60),
    )
    told = in_short(decide(before, after).model_dump(mode="json"))
    assert "Its score is better" in told and told.endswith(
        "most of all on tasks tagged loops of heldout: from 100.0 to 33.3 % solved."
    )


def test_a_gain_too_small_for_a_version_is_called_one() -> None:
    told = in_short(
        decide(OLD, card("new", range(112)), Policy(minimum_gain=0.05)).model_dump(mode="json")
    )
    assert told.startswith("It is better, but too little to be worth a version")


def test_a_decision_of_an_older_gate_is_told_too() -> None:
    recorded = json.loads((Path(__file__).parent / "decision-0.1.json").read_text(encoding="utf-8"))
    assert in_short(recorded).startswith("It ")
