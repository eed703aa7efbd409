"""Secrets and personal data in problems."""

from __future__ import annotations

import dataclasses

import pytest

from problems.cleaning.curation import curate
from problems.cleaning.secrets import secret_in
from tests.problems.test_curation import toy


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("mail jane.doe+x@corp-mail.de now", "an e-mail address"),
        ("key AKIAIOSFODNN7EXAMPLE", "AWS Access Key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
        ("ghp_" + "a1" * 18, "GitHub Token"),
        ("postgres://admin:hunter2@db.corp.net/x", "a password in an address"),
        ("call +49 30 901820 today", "a telephone number"),
        ("call (202) 456-1111 today", "a telephone number"),
        ("open /home/mmustermann/thesis.tex", "a name in a path"),
    ],
)
def test_a_secret_is_found_in_every_column_and_not_repeated(text: str, what: str) -> None:
    for column, problem in {
        "statement": toy("s", text),
        "solutions": toy("s", solution=f"x = '{text}'"),
        "tests": toy("s", tests=({"args": [text], "expected": 1},)),
        "extra": toy("s", extra={"note": text}),
        "checker": dataclasses.replace(toy("s"), checker=f"# {text}"),
        "tags": dataclasses.replace(toy("s"), tags=("easy", text)),
    }.items():
        assert secret_in(problem) == (what, column)
        assert text not in str(curate([problem], []).removed)


@pytest.mark.parametrize(
    "text",
    [
        "user@example.com",
        "a@b.test",
        "m = a @ b.T",
        "@decorator.name",
        "sk-learn",
        "https://docs.python.org:443/x",
        "123-456-7890",
        "+1 202-555-0143",
        "/home/user/Documents/../Pictures",
        "/home//foo/",
        "+12345678901234567",
        "abcdefghijklmnopqrstuvwxyzabcdefghij",
    ],
)
def test_lookalikes_of_secrets_are_accepted(text: str) -> None:
    assert secret_in(toy("s", text)) is None


@pytest.mark.parametrize("unit", ["a.", "//", "eyJ", "a:", "://", "+1 "])
def test_a_long_repetitive_text_is_searched_in_time(unit: str) -> None:
    assert secret_in(toy("s", unit * (300_000 // len(unit)) + " mail jane.doe@corp-mail.de")) == (
        "an e-mail address",
        "statement",
    )
