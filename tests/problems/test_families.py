"""Families of the embedded problems: disjoint operations and compositions."""

from __future__ import annotations

import pytest

from problems.embedded import families
from problems.embedded.families import COMMON, FAMILIES, common, examples, family_of, heldout
from problems.embedded.operations import BY_NAME
from problems.embedded.settings import FamilyConfig

CONFIG = FamilyConfig()


def test_families_have_known_and_disjoint_operations() -> None:
    listed = [operation for operations in FAMILIES.values() for operation in operations]
    assert set(listed) <= set(BY_NAME)
    assert len(listed) == len(set(listed))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_examples_held_out_and_common_problems_share_no_composition(
    family: str,
) -> None:
    shown, held_out = examples(CONFIG, family, 16), heldout(CONFIG, family, 24)
    parts = [
        {problem.extra["composition"] for problem in part}
        for part in (shown, held_out, common(CONFIG, 60))
    ]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 100
    assert {family_of(name) for name in parts[0] | parts[1]} == {family}
    assert {family_of(name) for name in parts[2]} == {COMMON}


def test_more_examples_extend_fewer_ones() -> None:
    few, more = (
        [problem.content_hash for problem in examples(CONFIG, "parity", count)] for count in (4, 16)
    )
    assert more[:4] == few


def test_a_composition_of_two_families_belongs_to_neither() -> None:
    assert family_of("even|first") is None
    assert family_of("even|odd") == "parity"
    assert family_of("up|down") == COMMON


def test_a_too_small_family_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "LOOKED_AT", 200)
    with pytest.raises(ValueError, match=r"'digits' .*\d+ .*heldout .*1000"):
        heldout(CONFIG, "digits", 1000)
