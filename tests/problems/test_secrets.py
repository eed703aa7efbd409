"""Secrets and personal data in problems."""

from __future__ import annotations

import dataclasses

import pytest

from problems.cleaning.curation import own_fault
from problems.cleaning.secrets import secret_in
from problems.cleaning.settings import Curation
from problems.prompt import TURNS
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
        ('api_key = "q8Zr4TnW2xLk9VbD"', "an assigned key or password"),
        ("PASSWORD=hunter2", "an assigned key or password"),
        ('password: "correct!horse"', "an assigned key or password"),
        ("Authorization: Bearer 9f8e7d6c5b4a39281706", "a bearer token"),
        ('DB_PASS = "qXDgLVXZx3scB8"', "an assigned key or password"),
        ("password: tRutlZfOjUStEk", "an assigned key or password"),
        ("Authorization: Basic ZGVwbG95OnMzY3IzdFBhc3N3MHJk", "a login in a header"),
        ("r8_" + "aB3d" * 9 + "x", "a vendor's token"),
        ("lin_api_" + "aB3d" * 10, "a vendor's token"),
        ("token: 'q8Zr4TnW2xLk9VbD'", "an assigned token"),
        ("sshpass -p hunter2x ssh a", "a login on a command line"),
        ("curl -u deploy:hunter2x https://a.b", "a login on a command line"),
        ("discord.com/api/webhooks/" + "1" * 18 + "/" + "aB3d" * 17, "a webhook"),
        ("key-" + "0f" * 16, "a Mailgun key"),
        ("mail ｊａｎｅ＠corpmail．de", "an e-mail address"),
        ("dapi" + "0f" * 16, "a Databricks token"),
        ("npm_" + "aB3d" * 9, "an npm token"),
        ("WANDB_API_KEY=" + "0f1e2" * 8, "a Weights & Biases key"),
        ("dop_v1_" + "0f" * 32, "a DigitalOcean token"),
        ("SSN 219-09-9999", "a social security number"),
        ("to DE89 3704 0044 0532 0130 00 now", "an account number (IBAN)"),
        ("GB29NWBK60161331926819", "an account number (IBAN)"),
        ("card 4111 1111 1111 1111", "a card number"),
        ("card 378282246310005", "a card number"),
        ("host 93.184.216.34 answers", "an IPv4 address"),
        ("ruf 030 901820 an", "a telephone number"),
        ("tel 0171 1234567 now", "a telephone number"),
        ("01 42 68 53 00", "a telephone number"),
        ("phone: 456-1111", "a telephone number"),
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
        assert text not in str(own_fault(problem, Curation()))


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize(
    "text",
    [
        'It\'s "here":\n\tmail jane.doe@corp-mail.de',
        "use \"it\": api_key='q8Zr4TnW2xLk9VbD'",
        'don\'t lose it\r\nPASSWORD="hunter2"',
        "schön — token: 'q8Zr4TnW2xLk9VbD', \"ok\"",
    ],
)
def test_earlier_turns_of_a_chat_are_searched_as_the_statement_is(text: str, role: str) -> None:
    turns = [{"role": role, "content": text}, {"role": "user", "content": "Now twice x."}]
    found, column = secret_in(toy("s", "Now twice x.", extra={TURNS: turns})) or ("", "")
    assert (found, "statement") == secret_in(toy("s", text))
    assert column == "extra"


@pytest.mark.parametrize(
    "text",
    [
        "user@example.com",
        "2221 2222 2223 2224 2225 2226 2227",
        "password: UserPasswordField",
        "first_pass = second",
        "secret = 'The Secret Garden 1911'",
        "token = 'aaaaaaaaaaaaaaaaaaaaaaaa'",
        "curl -u $USER:$PASSWORD1 http://a.b",
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
        "api_key = os.environ['API_KEY']",
        "password = 'your password'",
        "if password == 'a1b2c3d4': pass",
        "def f(api_key=None): pass",
        "The bearer of this letter",
        "192.168.1.1 or 127.0.0.1 or version 1.2.3.4",
        "256.100.50.25",
        "card 4111 1111 1111 1112",
        "4111111111111111 4012888888881881 4222222222222222 5105105105105100",
        "DE89 3704 0044 0532 0130 01",
        "000-12-3456",
        "01-02-2024 and 2024-01-02",
        "[10, 20, 30, 405, 6070, 8090]",
    ],
)
def test_lookalikes_of_secrets_are_accepted(text: str) -> None:
    assert secret_in(toy("s", text)) is None


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("Check a credit card number.", "4111111111111111"),
        ("Is this a phone?", "+94773283048"),
    ],
)
def test_the_tests_of_a_task_about_such_numbers_need_some(statement: str, number: str) -> None:
    tests = ({"args": [number], "expected": True},)
    assert secret_in(toy("s", statement, tests=tests)) is None
    assert secret_in(toy("s", "Reverse a text.", tests=tests)) is not None


@pytest.mark.parametrize("unit", ["a.", "//", "eyJ", "a:", "://", "+1 "])
def test_a_long_repetitive_text_is_searched_in_time(unit: str) -> None:
    assert secret_in(toy("s", unit * (100_000 // len(unit)) + " mail jane.doe@corp-mail.de")) == (
        "an e-mail address",
        "statement",
    )
