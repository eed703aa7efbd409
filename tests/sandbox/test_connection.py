"""The judge's end of the connection to a program.

Whatever a program sends, the result is a value or an exception, and never one of the tests' own
objects.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.child.connection import Program
from sandbox.child.proxies import StandIn
from sandbox.child.raised import ProgramGone
from sandbox.wire import NotPlain, frame

TAGS = [
    "t",
    "s",
    "z",
    "d",
    "b",
    "c",
    "f",
    "i",
    "g",
    "o",
    "v",
    "y",
    "n",
    "m",
    "l",
    "a",
    "h",
    "@",
    "k",
    "j",
    "e",
    "x",
    "co",
    "cg",
    "?",
]
NAMES = [
    "Decimal",
    "Counter",
    "StringIO",
    "Random",
    "Pattern",
    "pathlib.PosixPath",
    "Node",
    "int",
    "ValueError",
    "float64",
    "__eq__",
    "__iter__",
    "x",
]
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 10)
    | st.floats()
    | st.sampled_from(NAMES)
    | st.text(max_size=3)
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(TAGS), inner, min_size=1, max_size=1)
    ),
    max_leaves=20,
)
special = st.lists(st.sampled_from(["__iter__", "__next__", "__float__", "__call__"]))
handles = st.fixed_dictionaries(
    {"h": st.tuples(st.integers(1, 3), st.sampled_from(NAMES), special)}
)
kinds = st.sampled_from([b"R", b"R", b"R", b"M", b"X", b"N", b"P", b"K", b"?"])


@contextlib.contextmanager
def program_that_says(messages: list[tuple[bytes, Any]]) -> Iterator[Program]:
    """Yield a connection on whose other side these messages are ready, followed by end of file."""
    ours, theirs = socket.socketpair()
    for kind, tree in messages:
        theirs.sendall(frame(kind + json.dumps(tree).encode()))
    theirs.shutdown(socket.SHUT_WR)
    program = Program(ours, "candidate")
    program.loaded = True
    with ours, theirs:
        yield program


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(kinds, trees | handles), min_size=1, max_size=6))
def test_any_message_is_a_value_or_an_exception(messages: list[tuple[bytes, Any]]) -> None:
    class Node:
        pass

    Node.__module__ = "tests"
    secret, values = ["of the tests"], list[Any]()
    with program_that_says(messages) as program, contextlib.suppress(ProgramGone):
        program.begin({"__name__": "tests", "Node": Node}, visible=False)
        for _ in messages:
            try:
                values.append(program.candidate(secret))
                if isinstance(values[-1], StandIn):
                    values += [float(values[-1]), *values[-1]]  # type: ignore[arg-type, misc]
            except Exception as error:  # any that a test may raise
                values.append(error)
    assert all(value is not secret for value in values)


def test_a_part_can_be_referenced_only_in_its_own_message() -> None:
    # of the request, its arguments, the list, the keywords
    changes = [
        None,
        [[], [], [7], {"d": []}],
    ]
    with program_that_says([(b"M", changes), (b"R", {"@": 2}), (b"R", {"@": 4})]) as program:
        program.begin({"__name__": "tests"}, visible=False)
        first, second = [1], [2]
        program.candidate(first)
        assert first == [7]
        assert program.candidate(second) is second
        with pytest.raises(NotPlain):
            program.candidate([3])
        assert program.refused
