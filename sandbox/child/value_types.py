"""Types of the standard library and numpy whose values cross by value: how each is taken apart and
rebuilt.
"""

from __future__ import annotations

import io
import re
import sys
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from random import Random
from time import struct_time
from typing import Any

from sandbox.wire import NotPlain

BUFFERS = (io.StringIO, io.BytesIO)
KEYS, VALUES, ITEMS = type({"": 0}.keys()), type({"": 0}.values()), type({"": 0}.items())
_ARRAYS = {
    *("bool", "float16", "float32", "float64", "complex64", "complex128"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
TO_PARTS: dict[type, Callable[[Any], list[Any]]] = {
    Decimal: lambda v: [str(v)],
    Fraction: lambda v: [v.numerator, v.denominator],
    deque: lambda v: [list(v), v.maxlen],
    range: lambda v: [v.start, v.stop, v.step],
    date: lambda v: [v.isoformat()],
    time: lambda v: [v.isoformat()],
    datetime: lambda v: [v.isoformat()],
    timedelta: lambda v: [v.days, v.seconds, v.microseconds],
    timezone: lambda v: [v.utcoffset(None)],
    KEYS: lambda v: [list(v)],
    VALUES: lambda v: [list(v)],
    ITEMS: lambda v: [list(v)],
    bytearray: lambda v: [bytes(v)],
    slice: lambda v: [v.start, v.stop, v.step],
    re.Pattern: lambda v: [v.pattern, v.flags],
    Random: lambda v: [v.getstate()],
    array: lambda v: [v.typecode, v.tolist()],
    **dict.fromkeys(BUFFERS, lambda v: [v.getvalue(), v.tell()]),
}
# Subclasses of plain types that keep their own type.
SUBCLASSES: dict[type, Callable[[Any], list[Any]]] = {
    struct_time: lambda v: [list(v)],
    Counter: lambda v: [dict(v)],
    OrderedDict: lambda v: [list(v.items())],
    defaultdict: lambda v: [v.default_factory, list(v.items())],
}
MADE: dict[str, Callable[..., Any]] = {
    **{
        kind.__name__: kind
        for kind in (Decimal, Fraction, deque, range, timedelta, timezone, bytearray, slice, array)
    },
    "struct_time": struct_time,
    "Counter": Counter,
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
    **{kind.__name__: kind.fromisoformat for kind in (date, time, datetime)},
    "Pattern": re.compile,
    "Random": lambda state: _random(state),
    KEYS.__name__: lambda keys: dict.fromkeys(keys).keys(),
    VALUES.__name__: lambda values: dict(enumerate(values)).values(),
    ITEMS.__name__: lambda items: dict(items).items(),
    **{
        kind.__name__: lambda content, at, kind=kind: filled(kind(), content, at)
        for kind in BUFFERS
    },
}
# types of modules that are imported when one of them crosses, rebuilt from their text
_BY_TEXT = {
    "pathlib": {"PosixPath", "PurePosixPath", "PureWindowsPath"}, "uuid": {"UUID"},
    "ipaddress": {"IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface",
        "IPv6Interface"},
}  # fmt: skip


def text_name(value: Any) -> str | None:
    """Return the name of a type that crosses as text, with its module, or None."""
    kind = type(value)
    known = (
        kind.__name__ in _BY_TEXT.get(kind.__module__, ())
        and getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    )
    return f"{kind.__module__}.{kind.__name__}" if known else None


def build_value(name: Any, parts: list[Any]) -> Any:
    """Return the value of this type with these parts. Raises NotPlain."""
    module, _, kind = str(name).partition(".")
    try:
        return (
            getattr(__import__(module), kind)(str(*parts))
            if kind in _BY_TEXT.get(module, ())
            else MADE[name](*parts)
        )
    except (ArithmeticError, KeyError, TypeError, ValueError, re.error) as error:
        raise NotPlain(f"broken message: no {str(name)[:20]}: {type(error).__name__}") from None


def is_array(value: Any) -> bool:
    return (
        type(value).__module__ == "numpy"
        and type(value).__name__ == "ndarray"
        and value.dtype.kind in "biufc"
    )


def is_number_of_numpy(value: Any) -> bool:
    """Whether this is a number of numpy, or an array of numbers."""
    return getattr(getattr(value, "dtype", None), "name", None) in _ARRAYS


def build_array(numpy: Any, kind: Any, items: Any) -> Any:
    """Return a number, or an array, of one of the number types. Raises NotPlain for
    another type.
    """
    if kind not in _ARRAYS:
        raise NotPlain("broken message: no array of numbers")
    return (
        numpy.array(items, dtype=kind) if isinstance(items, list) else numpy.dtype(kind).type(items)
    )


_named_tuples: dict[tuple[str, tuple[str, ...]], type] = {}


def named_tuple(name: Any, fields: tuple[Any, ...]) -> type:
    """Return a class for named tuples whose own class is unknown on this side. Raises NotPlain."""
    from collections import namedtuple

    if type(name) is not str or set(map(type, fields)) - {str} or len(fields) > 1000:
        raise NotPlain("broken message: no named tuple")
    if (name, fields) not in _named_tuples:
        if len(_named_tuples) > 1000:
            _named_tuples.clear()
        try:
            _named_tuples[name, fields] = namedtuple(name, fields)  # type: ignore[misc]
        except ValueError as error:
            raise NotPlain(f"broken message: {error}"[:200]) from None
    return _named_tuples[name, fields]


def _random(state: Any) -> Random:
    generator = Random()
    generator.setstate(state)
    return generator


def filled(buffer: Any, content: str | bytes, at: int) -> Any:
    buffer.write(content)
    buffer.seek(at)
    return buffer
