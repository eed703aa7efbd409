"""Equality as the judge decides it."""

from __future__ import annotations

import contextlib
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.child.objects import encode_result
from sandbox.wire import NotPlain, encode
from sandbox.worker.compare import same_output, same_text


def equal(got: Any, want: Any, tolerance: float | None = None) -> bool:
    return same_text(encode(got).encode(), encode(want).encode(), tolerance)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (1, 1.0),
        (True, 1),
        ((1, 2), [1, 2]),
        ([1, (2,)], (1, [2])),
        ({1: "a"}, {1.0: "a"}),
        ({True: 0}, {1: 0}),
        ({1, 2}, {2.0, 1}),
        (frozenset({1}), {1}),
        (math.nan, math.nan),
        (10**400, 10**400),
        (1 + 0j, 1),
        ({(1, 2): 3}, {(1, 2): 3}),
        (-0.0, 0.0),
        ([], ()),
        ("", ""),
    ],
)
def test_equal_values_are_accepted(got: Any, want: Any) -> None:
    assert equal(got, want)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        ("1", 1),
        ([1], {1}),
        ({}, []),
        (None, 0),
        (None, False),
        ("a", b"a"),
        ([1, 2], [1, 2, 3]),
        ([], [0]),
        ({1: 2}, {1: 2, 3: 4}),
        (math.nan, 1.0),
        (1.0, math.nan),
        (math.inf, 10**400),
        ({1: 2}, {2: 1}),
        ("1", [1]),
        ([1], 1),
        ("ab", ["a", "b"]),
        (0.1 + 0.2, 0.3),
        ({}, None),
        (10**400, 1.0),
    ],
)
def test_unequal_values_are_rejected(got: Any, want: Any) -> None:
    assert not equal(got, want)


@pytest.mark.parametrize(
    ("got", "want", "close"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e9 + 1, 1e9, True),
        (0.100001, 0.1, True),
        (5.000001, 5, True),
        (0.1000011, 0.1, False),
        ([1.0, (2.0000001,)], [1, [2]], True),
        (1.1, 1.0, False),
        (math.nan, 0.0, False),
        (math.inf, 1e308, False),
        (1e308, math.inf, False),
        ({"a": 0.3}, {"a": 0.1 + 0.2}, True),
        (10**400, 1.0, False),
    ],
)
def test_tolerance_applies_to_nested_values(got: Any, want: Any, close: bool) -> None:
    assert equal(got, want, 1e-6) is close


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (10**12 + 1, 10**12),
        (10**12 + 1.0, 10**12),
        (1000000999, 1000000000),
        ([1, 1000000999.0], [1, 1000000000]),
        (1e18, 10**18 + 3),
        (1.0000001, True),
    ],
)
def test_tolerance_does_not_apply_to_integers(got: Any, want: Any) -> None:
    assert not equal(got, want, 1e-6)


@pytest.mark.parametrize(
    ("got", "want", "same"),
    [
        (Decimal("1.5"), 1.5, True),
        (Fraction(3, 2), 1.5, True),
        (Decimal("0.1"), 0.1, False),
        (Fraction(1, 3), 1 / 3, False),
        ([Decimal(2)], (2,), True),
        (Decimal("NaN"), 1.0, False),
        (Decimal("Infinity"), math.inf, True),
        (Decimal("1e999999999"), 1.0, False),
        (Decimal("sNaN"), 1.0, False),
        ({Decimal(1): 2}, {1: 2}, True),
        (Fraction(7**40_000, 3**40_000), 1.0, False),
    ],
)
def test_decimals_and_fractions_are_numbers(got: Any, want: Any, same: bool) -> None:
    assert same_text(encode_result(got)[0].encode(), encode(want).encode(), None) is same


@pytest.mark.parametrize(
    "parts",
    [
        '["Decimal",["x"]]',
        '["Decimal",[1]]',
        '["Fraction",[1,0]]',
        '["Fraction",[1]]',
        '["Decimal","1"]',
        "[1,2]",
        '["Decimal",[]]',
    ],
)
def test_an_invalid_number_equals_nothing(parts: str) -> None:
    assert not same_text(b'{"v":%s}' % parts.encode(), b"1", None)


trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["t", "s", "z", "d", "b", "c", "f", "i", "", "sz", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=12,
)
wanted = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.integers() | st.text(), inner)
        | st.sets(st.integers() | st.text())
    ),
    max_leaves=8,
)


@given(trees, wanted)
def test_any_message_is_compared_or_refused(sent: Any, want: Any) -> None:
    for tolerance in (None, 1e-6):
        with contextlib.suppress(NotPlain):
            assert same_text(json.dumps(sent).encode(), encode(want).encode(), tolerance) in (
                True,
                False,
            )


@given(wanted)
def test_every_value_equals_itself(value: Any) -> None:
    assert equal(value, value)
    assert equal(value, value, 1e-6)


numbers = st.integers(-3, 3) | st.floats(-3, 3) | st.just(math.nan)


@given(st.lists(numbers, max_size=8), st.randoms(), st.sampled_from(["set", "unordered"]))
def test_unordered_comparison_ignores_the_order_of_numbers(
    returned: list[float], random: Any, compare: str
) -> None:
    wanted = [
        number + random.choice([0, 1e-9]) if type(number) is float else number
        for number in returned
    ]
    random.shuffle(wanted)
    assert same_text(encode(returned).encode(), encode(wanted).encode(), 1e-6, compare)
    assert not same_text(
        encode([*returned, 7]).encode(), encode([*wanted, 8]).encode(), 1e-6, compare
    )


def test_a_much_longer_answer_is_not_parsed() -> None:
    assert not same_text(b"[" + b"[]," * 400_000 + b"[]]", b"[[]]", None, "set")
    assert same_text(encode([1] * 5_000).encode(), encode([1]).encode(), None, "set")


def test_colliding_keys_are_compared_quickly() -> None:
    # all of them hash to 0: a dict of them takes a minute
    keys = [(2**61 - 1) * i for i in range(20_000)]
    sent = json.dumps({"d": [[key, 0] for key in keys]}).encode()
    assert not same_text(sent, encode(dict.fromkeys(range(20_000), 0)).encode(), None)


@pytest.mark.parametrize(
    ("got", "want", "tolerance", "same"),
    [
        (b"a b\n", b"a b", None, True),
        (b"a  \r\nb\n\n\n", b"a\nb\n", None, True),
        (b"a b", b"ab", None, False),
        (b" a", b"a", None, False),
        (b"0.30000001 x", b"0.3 x", 1e-6, True),
        (b"0.31", b"0.3", 1e-6, False),
        (b"nan", b"0.3", 1e-6, False),
        (b"", b"\n", None, True),
        (b"\xff\xfe", b"a", None, False),
        (b"1 2 3", b"1 2", 1e-6, False),
        (b"1000000999 3.5", b"1000000000 3.5", 1e-6, False),
        (b"1000000999.0", b"1000000000", 1e-6, False),
        (b"3.0000001", b"3", 1e-6, True),
        (b"1000000999", b"1000000000.0", 1e-6, True),
        (b"1_000", b"1000.0", 1e-6, False),
        (b"+3", b"3", 1e-6, True),
        (b"0x10", b"16.0", 1e-6, False),
    ],
)
def test_output_is_compared_line_by_line(
    got: bytes, want: bytes, tolerance: float | None, same: bool
) -> None:
    assert same_output(got, want, tolerance) is same


@pytest.mark.parametrize(
    ("got", "want", "same"),
    [
        (b"0.50 x", b"0.5 x", True),
        (b"1.0", b"1", True),
        (b"-0.0", b"0", True),
        (b"+2.", b"2.00", True),
        (b"01", b"1", False),
        (b"1e0", b"1.0", False),
        (b"0.5000000001", b"0.5", False),
        (b"v1.0", b"v1.00", False),
        (b"1_0.0", b"10.0", False),
    ],
)
def test_tokens_are_equal_decimals(got: bytes, want: bytes, same: bool) -> None:
    assert same_output(got, want, None, "tokens") is same
    assert not same_output(got, want, None)
