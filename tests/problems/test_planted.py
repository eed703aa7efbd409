"""Share of planted copies count among training problems and against a gated benchmark."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from problems.cleaning import sketch
from problems.cleaning.contamination import GatedIndex
from problems.cleaning.duplicates import duplicates
from problems.cleaning.gating import is_gated_mbpp
from problems.schema import Problem
from problems.sources.registry import load
from tests.problems.conftest import DATA
from tests.problems.planting import ALONE, WAYS

COUNT = 50


@pytest.fixture(scope="module")
def real() -> list[Problem]:
    if not (DATA / "mbpp").is_dir() or not (DATA / "leetcode").is_dir():
        pytest.skip(
            f"no mbpp or leetcode in {DATA}: set RATCHET_DATA to the folder that holds them"
        )
    mbpp, leetcode = (
        load("mbpp", DATA / "mbpp").problems,
        load("leetcode", DATA / "leetcode").problems,
    )
    rng = random.Random(7)
    return [
        *rng.sample(
            [
                problem
                for problem in mbpp
                if is_gated_mbpp(int(problem.problem_id.rpartition("/")[2]))
            ],
            2 * COUNT,
        ),
        *rng.sample(leetcode, 2 * COUNT),
    ]


def plant(real: list[Problem], way: str) -> tuple[list[Problem], list[Problem]]:
    """Return 50 problems, half from MBPP and half from LeetCode, and their copies."""
    rng = random.Random(way)
    originals = [
        *rng.sample(real[: 2 * COUNT], COUNT // 2),
        *rng.sample(real[2 * COUNT :], COUNT // 2),
    ]
    return originals, [(WAYS | ALONE)[way](problem, rng) for problem in originals]


# of 50: complete copies, then copies of one part, where a lexical comparison misses some
RECALL = {
    "verbatim": 50,
    "renamed": 50,
    "re-worded": 49,
    "reordered tests": 50,
    "renamed solution alone": 37,
    "re-worded statement alone": 18,
    "reordered tests alone": 41,
}


@pytest.mark.slow
@pytest.mark.parametrize("way", RECALL)
def test_planted_copies_of_gated_tasks_are_found(real: list[Problem], way: str) -> None:
    originals, copies = plant(real, way)
    overlaps = GatedIndex(originals).overlaps(copies)
    pairs = {(overlap.problem_id, overlap.gated_id) for overlap in overlaps if overlap.leak}
    count = sum(
        (copy.problem_id, original.problem_id) in pairs
        for original, copy in zip(originals, copies, strict=True)
    )
    assert count >= RECALL[way]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_planted_copies_among_training_problems_are_found(real: list[Problem], way: str) -> None:
    originals, copies = plant(real, way)
    others = [replace(problem, gated=False, split="train") for problem in real]
    groups = [
        {group.kept, *(member.problem_id for member in group.others)}
        for group in duplicates([*others, *copies]).groups
    ]
    pairs = [
        {original.problem_id, copy.problem_id}
        for original, copy in zip(originals, copies, strict=True)
    ]
    assert all(any(pair <= group for group in groups) for pair in pairs)


@pytest.mark.slow
def test_several_processes_find_the_same_duplicates(
    real: list[Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketch, "MANY", 0)
    _, copies = plant(real, "re-worded")
    problems = [replace(problem, gated=False, split="train") for problem in real] + copies
    assert duplicates(problems, processes=2) == duplicates(problems)
