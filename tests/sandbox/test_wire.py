"""Plain data survives serialization, and nothing else is serialized."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.wire import Frames, NotPlain, TooLong, decode, encode, frame

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers()
)
keys = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.tuples(st.integers(), st.text())
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(keys, inner)
        | st.sets(keys)
        | st.frozensets(keys)
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    return (
        type(a) is type(b) and repr(a) == repr(b)
        if not isinstance(a, set | frozenset)
        else a == b and type(a) is type(b)
    )


@given(values)
def test_plain_data_survives_a_round_trip(value: Any) -> None:
    assert encode(decode(encode(value))) == encode(value)


@given(scalars | st.lists(scalars) | st.lists(scalars).map(tuple) | st.sets(keys))
def test_types_survive_a_round_trip(value: Any) -> None:
    assert same(decode(encode(value)), value)


@pytest.mark.parametrize("digits", [299, 300, 5000])
def test_very_long_integers_survive_a_round_trip(digits: int) -> None:
    assert decode(encode([10**digits, -(10**digits)])) == [10**digits, -(10**digits)]


@pytest.mark.parametrize("value", [object(), iter([]), {1: [lambda: 0]}, ..., range(3)])
def test_data_that_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(NotPlain):
        encode(value)


def test_a_recursive_value_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotPlain):
        encode([loop, loop])


def test_a_lone_surrogate_survives_a_round_trip() -> None:
    assert decode(encode("\ud800")) == "\ud800"


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[1",
        '{"q": 1}',
        '{"t": 1}',
        '{"i": "x"}',
        '{"d": [[[], 1]]}',
        "[" * 100_000,
        "{}",
        '{"t": [], "s": []}',
    ],
)
def test_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(NotPlain):
        decode(text)


@given(st.lists(st.binary(), max_size=5), st.integers(1, 7))
def test_frames_are_complete_however_they_arrive(payloads: list[bytes], step: int) -> None:
    data, reader = b"".join(map(frame, payloads)), Frames()
    assert [
        payload for at in range(0, len(data), step) for payload in reader.feed(data[at : at + step])
    ] == payloads


def test_a_too_long_frame_is_refused_before_it_arrives() -> None:
    with pytest.raises(TooLong):
        list(Frames(most=10).feed(b"\0\0\0\x0b"))


def test_numpy_values_become_python_values() -> None:
    numpy = pytest.importorskip("numpy")
    assert decode(encode([numpy.int64(3), numpy.float64(0.5), numpy.array([[1, 2]])])) == [
        3,
        0.5,
        [[1, 2]],
    ]


def test_infinities_and_nan_survive_a_round_trip() -> None:
    low, high, nan = decode(encode([-math.inf, math.inf, math.nan]))
    assert (low, high) == (-math.inf, math.inf)
    assert math.isnan(nan)
