"""Tagged plain data as ASCII JSON, in frames: the only format between a program and its judges.
Never pickle.

None, bool, str, list and ordinary int and float are JSON's own. Everything else is an object with
one key, its tag: {"t": tuple}, {"s": set}, {"z": frozenset}, {"d": dict as pairs}, {"b": bytes as
hex}, {"c": complex}, {"f": "nan", "inf", "-inf"}, {"i": an int too long for digits, as hex}.
A value that is not plain is sent only if both sides define how (child/objects.py): `foreign` gives
it a tag of its own.
A tree is a value after json.loads and before `build`. A judge compares trees, so that nothing a
program sent is ever hashed or constructed.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, ParamSpec, TypeVar

MAX_DEPTH = 900  # about where Python itself gives up comparing nested lists
MAX_NODES = 5_000_000
MAX_FRAME = 48 * 2**20  # bytes
# Python frames for MAX_DEPTH levels; the C stack of 8 MiB has room for several times as many.
RECURSION_ROOM = 6_000
DIGITS = 10**300  # a larger int is sent as hex: decimal digits take quadratic time

P = ParamSpec("P")
R = TypeVar("R")
Tree = None | bool | int | float | str | list[Any] | dict[str, Any]

_dump = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
_SIMPLE = {str, bool, type(None)}
_SCALARS = {*_SIMPLE, int, float}


class NotPlain(ValueError):
    """The value has no plain form, or the text is not an encoded value."""


def deep(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call `function`; if it exceeds the recursion limit, call it once more with a limit that fits
    MAX_DEPTH levels.
    """
    try:
        return function(*args, **kwargs)
    except RecursionError:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + RECURSION_ROOM)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setrecursionlimit(before)


def encode(value: Any) -> str:
    """Return the text of a value; equal texts mean equal values (NaN too). Raises NotPlain."""
    return dump(deep(tree, value))


def dump(of: Tree) -> str:
    try:
        return deep(_dump, of)
    except (ValueError, RecursionError) as error:
        raise NotPlain(str(error)) from None


def decode(text: str | bytes) -> Any:
    """Return the value of a text. Raises NotPlain. It builds whatever the text says: call it only
    under rlimits.
    """
    return deep(build, parse(text))


def parse(text: str | bytes) -> Tree:
    """Return the tree of a text, and build nothing else. Raises NotPlain."""
    try:
        ascii_text = text if isinstance(text, str) else text.decode("ascii")
        value, end = deep(_scan, ascii_text, 0)
    except (ValueError, RecursionError, StopIteration) as error:
        raise NotPlain(f"broken message: {error}"[:200]) from None
    if end != len(ascii_text):
        raise NotPlain("broken message: more than one value")
    return value  # type: ignore[no-any-return]


def tree_bytes(text: bytes) -> int:
    """Estimate the memory that `parse` of this text takes, in a few passes. A text of a MB can
    describe a list of half a million lists.
    """
    return (
        len(text)
        + 230 * text.count(b"{")
        + 80 * text.count(b"[")
        + 40 * text.count(b",")
        + 20 * text.count(b'"')
    )


def tree(value: Any) -> Tree:
    """Return the tree of a value. Subclasses are sent as their base; numpy scalars and arrays as
    Python numbers and lists.
    """
    return Planter().plant(value, 0)


class Planter:
    """Makes trees. Without the two hooks a value that is not plain raises NotPlain.

    foreign: returns the tree of a value that is not plain.
    subclass: the same for an instance of a subclass of a plain type; None sends it as its base.
    """

    def __init__(
        self,
        foreign: Callable[[Any], Tree] | None = None,
        subclass: Callable[[Any], Tree] | None = None,
        nodes: int = MAX_NODES,
    ) -> None:
        self.left = nodes
        self.foreign, self.subclass = foreign, subclass

    def plant(self, value: Any, depth: int) -> Tree:
        kind = type(value)
        if kind in _SIMPLE:
            return value  # type: ignore[no-any-return]
        if kind is int:
            return value if -DIGITS < value < DIGITS else {"i": hex(value)}
        if kind is float:
            return value if isfinite(value) else {"f": repr(value)}
        if depth > MAX_DEPTH:
            raise NotPlain(f"nested deeper than {MAX_DEPTH} levels")
        if kind is list:
            return self._items(value, depth)
        if kind is tuple:
            return {"t": self._items(value, depth)}
        if kind is dict:
            return {
                "d": [
                    [self.plant(k, depth + 1), self.plant(v, depth + 1)]
                    for k, v in self._counted(value).items()
                ]
            }
        if kind is set or kind is frozenset:
            return {"s" if kind is set else "z": sorted(self._items(list(value), depth), key=_dump)}
        if kind is bytes or (kind is bytearray and not self.foreign):
            return {"b": value.hex()}
        if kind is complex:
            return {"c": [self.plant(value.real, depth), self.plant(value.imag, depth)]}
        if kind.__module__ == "numpy" and hasattr(value, "tolist"):
            return self.foreign(value) if self.foreign else self.plant(value.tolist(), depth + 1)
        for base in (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset):
            if issubclass(kind, base):
                if self.subclass and (of := self.subclass(value)) is not None:
                    return of
                return self.plant(
                    base.__getnewargs__(value)[0]
                    if base in (int, float, str, bytes)
                    else base(value),
                    depth + 1,
                )  # type: ignore[attr-defined]
        if self.foreign:
            return self.foreign(value)
        raise NotPlain(f"{kind.__name__} is not plain data")

    def _counted(self, value: Any) -> Any:
        self.left -= len(value)
        if self.left < 0:
            raise NotPlain(f"more than {MAX_NODES} elements")
        return value

    def _items(self, value: Any, depth: int) -> list[Any]:
        kinds = set(map(type, self._counted(value)))
        if (
            kinds <= _SIMPLE
            or (kinds == {int} and min(value) > -DIGITS and max(value) < DIGITS)
            or (kinds == {float} and all(map(isfinite, value)))
        ):
            return list(value)
        return [self.plant(v, depth + 1) for v in value]


class Builder:
    """Makes the value of a tree. foreign: functions for tags that are not plain data, by tag."""

    def __init__(self, foreign: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
        build = self.build
        self.makers: dict[str, Callable[[Any], Any]] = {
            **_PLAIN,
            "t": lambda body: tuple(build(v) for v in body),
            "s": lambda body: {build(v) for v in body},
            "z": lambda body: frozenset(build(v) for v in body),
            "d": lambda body: {build(k): build(v) for k, v in body},
            "c": lambda body: complex(*map(build, body)),
            **(foreign or {}),
        }

    def build(self, of: Tree) -> Any:
        """Return the value of a tree. Raises NotPlain for unknown tags."""
        if type(of) is list:
            return of if set(map(type, of)) <= _SCALARS else [self.build(v) for v in of]
        if type(of) is not dict:
            return of
        if len(of) != 1:
            raise NotPlain("broken message: an object has one tag")
        ((tag, body),) = of.items()
        try:
            return self.makers[tag](body)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise NotPlain(f"broken message: tag {tag[:8]}: {type(error).__name__}") from None


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "b": bytes.fromhex,
    "f": {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}.__getitem__,
    "i": lambda body: int(body, 16),
}
build = Builder().build


def _no_constant(name: str) -> None:
    raise NotPlain(f"broken message: {name} is no JSON")


# what json.loads does, without its search for white space
_scan = json.JSONDecoder(parse_constant=_no_constant).scan_once  # type: ignore[attr-defined]


def frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


class TooLong(ValueError):
    """A frame announces more bytes than the reader accepts."""


class Frames:
    """Splits a stream of bytes into frames. Raises TooLong as soon as one announces more than
    `most` bytes.
    """

    def __init__(self, most: int = MAX_FRAME) -> None:
        self.most = most
        self.buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self.buffer += data
        start = 0
        while len(self.buffer) >= start + 4:
            (length,) = struct.unpack_from(">I", self.buffer, start)
            if length > self.most:
                raise TooLong(f"a message of {length} bytes, at most {self.most} are taken")
            if len(self.buffer) < start + 4 + length:
                break
            yield bytes(self.buffer[start + 4 : start + 4 + length])
            start += 4 + length
        del self.buffer[:start]
