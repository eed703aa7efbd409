"""The facts of a manifest are shown in words."""

from __future__ import annotations

from artifacts.fact_texts import fact_texts


def test_counts_shares_and_hashes_are_phrases() -> None:
    facts = {"came_in": 7414, "pass_at_1": 0.72656, "battery": "unverified " + "a" * 64}
    assert fact_texts(facts) == ["7,414 read", "pass@1 72.7 %", "battery unverified aaaaaaaaaaaa"]


def test_a_fact_without_a_phrase_is_its_name_in_words() -> None:
    assert fact_texts({"first_loss": 6.255343}) == ["first loss 6.255"]


def test_a_fact_that_is_true_is_its_name_and_a_table_is_left_out() -> None:
    assert fact_texts({"off": True, "unverified": False, "by_step": {}, "empty": ""}) == ["off"]


def test_validation_is_a_count_of_rows_or_a_pass_rate() -> None:
    assert fact_texts({"validation": 128}) == ["128 validation problems"]
    assert fact_texts({"validation": 0.5}) == ["validation 50.0 %"]
