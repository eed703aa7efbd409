"""The search for similar texts: candidates, stable signatures and capped comparisons."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from problems.cleaning.minhash import CandidatePairs, alike, jaccard, shingles, signatures
from problems.cleaning.signature_file import SignatureFile
from problems.cleaning.similarity import tests as asked
from problems.schema import Problem

tokens = st.lists(st.sampled_from(["a", "b", "c", "ä", "<", "42"]), max_size=8)


def pairs(candidates: CandidatePairs) -> set[tuple[int, int]]:
    return set(zip(candidates.left.tolist(), candidates.right.tolist(), strict=True))


def texts(count: int, seed: int = 1) -> list[list[str]]:
    rng = random.Random(seed)
    return [rng.choices([f"w{number}" for number in range(500)], k=30) for _ in range(count)]


@given(tokens, tokens)
def test_similarity_is_the_jaccard_index_of_shingles(one: list[str], other: list[str]) -> None:
    def runs(words: list[str]) -> set[tuple[str, ...]]:
        return {
            tuple(words[at : at + size]) for size in (1, 2) for at in range(len(words) - size + 1)
        }

    union = runs(one) | runs(other)
    expected = len(runs(one) & runs(other)) / len(union) if union else 0.0
    assert jaccard(shingles(one, (1, 2)), shingles(other, (1, 2))) == expected


def test_a_signature_is_the_same_on_every_machine() -> None:
    [row] = signatures([shingles(["sort", "the", "list", "and", "drop", "the", "first"], (1, 2))])
    assert row[:4].tolist() == [3225798336, 3464240193, 3276715040, 507417642]


def test_only_near_copies_are_candidates() -> None:
    base = texts(400)
    copies = [[*text[:13], "new", *text[14:]] for text in base[:100]]
    rows = signatures(shingles(text, (1, 2)) for text in base + copies)
    expected = {(at, 400 + at) for at in range(100)}
    assert pairs(alike(rows, least=0.5)) == expected
    assert pairs(alike(np.concatenate([rows[400:], rows[:400]]), first=100, least=0.5)) == {
        (at, 100 + at) for at in range(100)
    }


def test_comparisons_in_a_crowded_bucket_are_capped_and_counted() -> None:
    rows = np.repeat(signatures([shingles(text, (1,)) for text in texts(2)]), [50, 3], axis=0)
    candidates = alike(rows, cap=5)
    assert pairs(candidates) == {
        (one, other) for other in range(50) for one in range(min(5, other))
    } | {
        (50, 51),
        (50, 52),
        (51, 52),
    }
    assert candidates.capped == 32
    assert candidates.uncompared == 32 * sum(range(1, 45))
    assert alike(rows, cap=50).capped == 0


def test_gated_rows_beyond_the_cap_are_counted() -> None:
    rows = np.repeat(signatures([shingles(texts(1)[0], (1,))]), 13, axis=0)
    candidates = alike(rows, first=10, cap=4)
    assert pairs(candidates) == {(gated, other) for gated in range(4) for other in range(10, 13)}
    assert candidates.capped == 32
    assert len(pairs(alike(rows, first=10, cap=16))) == 30


def test_an_empty_text_has_no_similar_text() -> None:
    nothing = shingles([], (1,))
    assert not pairs(alike(signatures([nothing, nothing, shingles(["a"], (1,))])))


def problem(style: str, test: dict[str, object]) -> Problem:
    return Problem("t/1", "t", "Add.", style, (test,), "f")  # type: ignore[arg-type]


def test_equal_call_and_assert_tests_have_equal_keys() -> None:
    call = problem("call", {"args": [(1, 2), "a b"], "expected": [3]})
    for source in (
        "assert f((1, 2), 'a b') == [3]",
        'assert candidate([1,2], x="a b")==(3,)',
        "assert [3] == f([1, 2], 'a b')",
    ):
        assert asked(
            problem("assert", {"source": f"def check(candidate):\n    {source}"})
        ) == asked(call)
    for source in ("assert f([1, 2], 'ab') == [3]", "assert f([1, 2], 'a b') != [3]"):
        assert asked(
            problem("assert", {"source": f"def check(candidate):\n    {source}"})
        ) != asked(call)


def test_an_assertion_on_a_variable_has_no_key() -> None:
    assert (
        asked(
            problem(
                "assert",
                {
                    "source": "def check(candidate):\n    for x in DATA:\n"
                    "        assert candidate(x) == 1"
                },
            )
        )
        == []
    )


def test_signatures_in_a_file_give_the_same_pairs(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sets = [np.unique(rng.integers(0, 300, 60).astype(np.uint64)) for _ in range(120)]
    rows = signatures([*sets, *(one[: len(one) - 2] for one in sets[:40])])
    stored = SignatureFile(tmp_path, "some")
    for block in np.split(rows, [50, 50, 130]):
        stored.append(block)
    order = rng.permutation(len(rows))[:150]
    taken, expected = alike(stored.take(order), least=0.5), alike(rows[order], least=0.5)
    assert len(taken.left) >= 20
    assert pairs(taken) == pairs(expected)
    assert (taken.capped, taken.uncompared) == (expected.capped, expected.uncompared)
