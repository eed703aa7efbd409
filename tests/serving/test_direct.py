"""The short way to an endpoint accepts only what FastAPI's way accepts, with the same values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from resources.home import Home
from serving.gateway.app import make_app
from serving.gateway.direct import Direct, valid
from serving.openai import ChatRequest, TextRequest
from serving.responses import ResponseRequest

SMALLEST: dict[type[BaseModel], dict[str, Any]] = {
    ChatRequest: {"messages": [{"role": "user", "content": "x"}]},
    TextRequest: {"prompt": "x"},
    ResponseRequest: {"input": "x"},
}
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-1, 2)
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["1", "true", "1.0", "auto", "\ud800"])
)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant"]), "content": SCALARS},
        optional={"tool_calls": st.lists(st.dictionaries(st.text(max_size=2), ANY))},
    ),
    min_size=1,
    max_size=2,
)
CALLS = st.lists(st.fixed_dictionaries({"args": st.lists(ANY, max_size=2), "expected": ANY}))
TESTS = st.fixed_dictionaries({"entry_point": st.just("solve"), "cases": CALLS})


@pytest.mark.parametrize("kind", SMALLEST)
def test_an_accepted_body_has_the_values_that_fastapi_reads(kind: type[BaseModel]) -> None:
    accepted = set()
    name = st.sampled_from([*kind.model_fields, "unknown"])

    @given(st.lists(st.tuples(name, SCALARS | ANY | MESSAGES | TESTS), max_size=2), st.booleans())
    @example([("n", 2), ("n", 1.0)], True)
    @example([("stream", "yes"), ("user", "é")], False)
    @example([("tests", {"cases": [{"stdout": "1"}, {"stdin": "2", "stdout": ""}]})], True)
    @example([("metadata", {"a": "1"}), ("metadata", {"b": "2", "a": "3"})], True)
    def check(more: list[tuple[str, Any]], ascii: bool) -> None:
        fields = [*SMALLEST[kind].items(), *more]  # a name may come twice
        pairs = [f'"{key}": {json.dumps(value, ensure_ascii=ascii)}' for key, value in fields]
        data = f"{{{', '.join(pairs)}}}".encode("utf-8", "surrogatepass")
        if body := valid(kind, data):
            accepted.add(data)
            assert repr(body) == repr(kind.model_validate(json.loads(data)))

    check()
    assert accepted  # otherwise the check above compared nothing


def test_openais_endpoints_for_answers_are_those_with_a_short_way(tmp_path: Path) -> None:
    direct = make_app(Home(tmp_path)).app
    assert isinstance(direct, Direct)
    assert {path: kind for path, (kind, _) in direct.endpoints.items()} == {
        "/v1/chat/completions": ChatRequest,
        "/v1/completions": TextRequest,
        "/v1/responses": ResponseRequest,
    }
