"""Families of the embedded problems: what is asked was shown nowhere."""

from __future__ import annotations

import pytest

from problems.sources import families
from problems.sources.compositional import FamilyConfig
from problems.sources.families import COMMON, FAMILIES, common, examples, family_of, heldout
from problems.sources.operations import BY_NAME

CONFIG = FamilyConfig()


def test_families_are_of_known_operations_and_share_none() -> None:
    listed = [operation for operations in FAMILIES.values() for operation in operations]
    assert set(listed) <= set(BY_NAME) and len(listed) == len(set(listed))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_s_examples_and_heldout_problems_share_no_composition_with_each_other_or_with_what_is_common(
    family: str,
) -> None:
    shown, asked = examples(CONFIG, family, 64), heldout(CONFIG, family, 100)
    parts = [
        {problem.extra["composition"] for problem in part}
        for part in (shown, asked, common(CONFIG, 300))
    ]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 464
    assert {family_of(name) for name in parts[0] | parts[1]} == {family} and {
        family_of(name) for name in parts[2]
    } == {COMMON}


def test_more_examples_begin_with_the_fewer() -> None:
    few, more = (
        [problem.content_hash for problem in examples(CONFIG, "parity", count)] for count in (4, 16)
    )
    assert more[:4] == few


def test_a_composition_of_two_families_belongs_to_none() -> None:
    assert (
        family_of("even|first") is None
        and family_of("even|odd") == "parity"
        and family_of("up|down") == COMMON
    )


def test_a_family_that_is_too_small_says_how_many_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "LOOKED_AT", 200)
    with pytest.raises(
        ValueError, match=r"'digits' has \d+ compositions in its heldout part, 1000 were asked for"
    ):
        heldout(CONFIG, "digits", 1000)
