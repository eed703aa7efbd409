"""Who may send what: keys, roles, limits, and input that is meant to harm."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from resources.home import Home, NotReady
from serving.gateway.keys import Keys
from serving.gateway.observations import Observations
from tests.serving.gateway_server import CHAT, ask, call, eventually, fast, raw, running


def test_with_keys_a_request_needs_one(own: str, home: Home) -> None:
    key = Keys(home.api_keys).add("ann", "user")
    eventually(lambda: ask(own)[0] == 401)
    assert ask(own, "rk-wrong")[0] == 401
    assert ask(own, key)[0] == 200


def test_a_revoked_key_is_refused(own: str, home: Home) -> None:
    keys = Keys(home.api_keys)
    key, _ = keys.add("ann", "user"), keys.add("bob", "user")
    eventually(lambda: ask(own, key)[0] == 200 and ask(own)[0] == 401)
    keys.revoke("ann")
    eventually(lambda: ask(own, key)[0] == 401)


def test_the_last_keys_revocation_opens_nothing(own: str, home: Home) -> None:
    keys = Keys(home.api_keys)
    key = keys.add("ann", "operator")
    eventually(lambda: ask(own, key)[0] == 200 and ask(own)[0] == 401)
    keys.revoke("ann")
    eventually(lambda: ask(own, key)[0] == 401)
    assert ask(own)[0] == call(f"{own}/models")[0] == 401


def test_two_keys_made_at_the_same_time_are_both_kept(home: Home) -> None:
    first, second = Keys(home.api_keys), Keys(home.api_keys)
    first.add("ann", "user")
    second.add("bob", "user")
    assert {key.name for key in Keys(home.api_keys).all()} == {"ann", "bob"}
    with pytest.raises(NotReady, match="already"):
        first.add("bob", "user")


def test_many_processes_make_and_revoke_keys_at_once(home: Home) -> None:
    def add(number: int) -> None:
        Keys(home.api_keys).add(f"key-{number}", "user")
        if number % 2:
            Keys(home.api_keys).revoke(f"key-{number}")

    with ThreadPoolExecutor(8) as pool:  # a lock of the kernel: threads with files of their own do
        list(pool.map(add, range(24)))
    assert {key.name for key in Keys(home.api_keys).all()} == {f"key-{n}" for n in range(0, 24, 2)}


@pytest.mark.parametrize("name", ["", "[/]", "a\x1b[31m", "\udcff", "a\n"])
def test_a_key_has_a_plain_name(home: Home, name: str) -> None:
    with pytest.raises(NotReady, match="letters"):
        Keys(home.api_keys).add(name, "user")


@pytest.mark.parametrize("header", [b"Host: [", b"Host: localhost\r\nOrigin: http://["])
def test_half_an_address_in_a_header_is_refused(served: str, header: bytes) -> None:
    head = b"GET /v1/models HTTP/1.1\r\n" + header + b"\r\nConnection: close\r\n\r\n"
    assert raw(served, head).startswith(b"HTTP/1.1 403")


def test_only_operators_load_versions_and_read_metrics(own: str, home: Home) -> None:
    keys = Keys(home.api_keys)
    user, operator = keys.add("ann", "user"), keys.add("root", "operator")
    eventually(lambda: ask(own, operator)[0] == 200 and ask(own)[0] == 401)
    paths = ("models", "models/1/load")
    by_user = [call(f"{own}/{path}", key=user, method="POST")[0] for path in paths]
    assert by_user == [403, 403]
    assert call(f"{own}/models/1/load", {}, operator)[0] == 200


def test_only_the_hash_of_a_key_is_stored(home: Home) -> None:
    key = Keys(home.api_keys).add("ann", "user")
    assert not any(key.encode() in file.read_bytes() for file in home.path.glob("records.db*"))


def test_the_rate_of_a_key_is_limited(own: str, home: Home) -> None:
    key = Keys(home.api_keys).add("ann", "user", requests_per_minute=20)
    eventually(lambda: ask(own)[0] == 401)
    statuses = [ask(own, key, max_tokens=1)[0] for _ in range(4)]
    assert statuses == [200, 200, 429, 429]


def test_the_size_of_a_body_is_limited(served: str) -> None:
    status, body = ask(served, messages=[{"role": "user", "content": "x" * 2**20}])
    assert status == 413
    assert "larger" in body["error"]["message"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /v1/comp", b""),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\n", b""),
        (b"POST /feedback HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{", b"408"),
        (
            b"POST /generate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            + (b"100000\r\n" + b"x" * 2**20 + b"\r\n") * 2,
            b"413",
        ),
    ],
    ids=["half a line", "half a head", "half a body", "a body that grows"],
)
def test_a_request_that_never_ends_is_hung_up_on(home: Home, sent: bytes, status: bytes) -> None:
    from serving.gateway.app import make_app

    settings = fast(body_s=0.5)
    with running(make_app(home, settings), settings) as url:
        reply = raw(url, sent)
    assert reply.partition(b"\r\n")[0].partition(b" ")[2].startswith(status)


def test_refusals_at_the_door_are_counted_by_their_code_alone(own: str, home: Home) -> None:
    keys = Keys(home.api_keys)
    operator = keys.add("root", "operator")
    user = keys.add("ann", "user", requests_per_minute=10, body_mib=0.001)
    eventually(lambda: [call(f"{own}/models", key=key)[0] for key in ("", user)] == [401, 403])
    statuses = [
        call(f"{own}/anywhere/{user}", key="rk-wrong")[0],
        call(f"{own}/metrics", key=user)[0],
        call(f"{own}/generate", b"x" * 2000, user)[0],
        call(f"{own}/generate", b"", user)[0],
    ]
    assert statuses == [401, 403, 413, 429]
    head = f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {operator}\r\n"
    page = raw(own, f"{head}Connection: close\r\n\r\n".encode()).decode()
    counted = re.findall(r"^ratchet_refused_total\{(.*)\} \d", page, re.MULTILINE)
    codes = ["invalid_api_key", "not_an_operator", "body_too_large", "rate_limit_exceeded"]
    assert {f'code="{code}"' for code in codes} <= set(counted)
    assert user not in page


@pytest.mark.parametrize("header", ["Origin: https://evil.example", "Host: evil.example"])
def test_without_keys_a_page_of_another_site_is_refused(served: str, header: str) -> None:
    host = "" if header.startswith("Host") else "Host: localhost\r\n"
    request = f"GET /models HTTP/1.1\r\n{host}{header}\r\nConnection: close\r\n\r\n"
    assert raw(served, request.encode()).startswith(b"HTTP/1.1 403 ")


BODIES: dict[str, Any] = {
    "no JSON": b"{",
    "no UTF-8": b'{"messages": "\xff"}',
    "deep": b"[" * 100_000,
    "list": [],
    "nothing": b"",
    "half a surrogate": {"messages": [{"role": "user", "content": "\ud800"}]},
    "surrogate as a key": {"\ud800": 1},
    "huge number": b'{"messages": [{"role": "user", "content": "x"}], "seed": 1e400}',
    "long number": b'{"prompt": "x", "max_tokens": ' + b"9" * 5000 + b"}",
    "NaN": b'{"prompt": "x", "temperature": NaN}',
    "too hot": {"messages": CHAT, "temperature": 3},
    "empty stop": {"messages": CHAT, "stop": [""]},
    "no prompt": {"messages": []},
    "role": {"messages": [{"role": "root", "content": "x"}]},
    "image": {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
    "many": {"messages": CHAT, "n": 10_000},
    "tests that are code": {
        "messages": CHAT,
        "tests": {"entry_point": "f(); g", "cases": [{"args": []}]},
    },
    "long": {"messages": [{"role": "user", "content": "x" * 100_000}]},
}


@pytest.mark.parametrize("name", BODIES)
def test_bad_input_gets_one_line_and_status_400(served: str, name: str) -> None:
    body = BODIES[name]
    for path in ("v1/chat/completions", "v1/completions", "generate"):
        status, reply = call(f"{served}/{path}", body)
        assert status == 400
        assert "\n" not in reply["error"]["message"]
    assert ask(served)[0] == 200


def test_no_prompt_and_no_key_reaches_the_disk_or_the_log(
    own: str, home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    key = Keys(home.api_keys).add("ann", "user")
    eventually(lambda: ask(own)[0] == 401)
    secret = "a secret of mine"
    ask(own, key, messages=[{"role": "user", "content": secret}], user=secret)
    ask(own, key, messages=[{"role": "user", "content": secret * 50}])
    call(f"{own}/v1/completions", {"prompt": secret, "stop": 1}, key)
    rows = Observations(home.observations)
    eventually(lambda: any(row.error == "refused" for _, row in rows.read()))
    output = "".join(capfd.readouterr())
    files = b"".join(f.read_bytes() for f in home.path.rglob("*") if f.is_file())
    for word in (secret, key):
        assert word not in output
        assert word.encode() not in files


def test_an_unknown_path_and_method_are_refused_in_the_same_form(served: str) -> None:
    for path, method in (("nowhere", "GET"), ("generate", "DELETE")):
        status, reply = call(f"{served}/{path}", method=method)
        assert status in (404, 405)
        assert json.dumps(reply["error"]["message"])
