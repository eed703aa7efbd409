"""How values that are not plain data cross between the tests of an `assert` job and the program, both ways and never by pickle.

- Small value types of the standard library cross by value, {"v": [type, parts]}; builtin types and functions by name, {"y": name}.
- A record is an instance of a class that the tests' own text defines (the ListNode of a prompt). It crosses by value too, {"o": number}, with class
  name and attributes in a table beside the message, so that a long chain is not deep and a ring ends: {"g": [tree, table]}.
- A function of the tests stays with them, and a number crosses in its place, {"k": number}; the program may have it called.
- Whatever else a program has stays with the program, and a handle crosses in its place, {"h": [number, name of its type, its special methods]}.
A list, dict, set or record that the program changed in place is sent back part by part; {"@": number} refers to one of those parts.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sandbox.wire import Builder, NotPlain, Planter, Tree, dump, parse

SPECIAL = (
    "__iter__", "__next__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__call__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__",
    "__int__", "__float__", "__round__", "__abs__", "__neg__", "__add__", "__sub__", "__mul__", "__enter__", "__exit__", "__hash__",
)  # fmt: skip

_TAKEN: dict[type, Callable[[Any], list[Any]]] = {
    Decimal: lambda v: [str(v)],
    Fraction: lambda v: [v.numerator, v.denominator],
    deque: lambda v: [list(v), v.maxlen],
    range: lambda v: [v.start, v.stop, v.step],
    date: lambda v: [v.isoformat()],
    time: lambda v: [v.isoformat()],
    datetime: lambda v: [v.isoformat()],
    timedelta: lambda v: [v.days, v.seconds, v.microseconds],
}
_MADE: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (Decimal, Fraction, deque, range, timedelta)},
    **{kind.__name__: kind.fromisoformat for kind in (date, time, datetime)},
}


class Codec(ABC):
    """Encodes and decodes messages of one side. What a side does with records and handles is its own: see the four methods below."""

    def __init__(self) -> None:
        self._builder = Builder({"g": self._graph, "o": self._numbered, "v": self._value, "y": self.named, "h": self.resolve, "@": self._part})
        self._makes: list[Any] = []
        self._parts: list[Any] = []
        self._met: dict[int, int] = {}
        self._waiting: list[Any] = []

    @abstractmethod
    def record_name(self, value: Any) -> str | None:
        """The class name under which this object crosses by value, or None where it does not."""

    @abstractmethod
    def new_record(self, name: str) -> Any:
        """An empty record of this class. Raises NotPlain."""

    @abstractmethod
    def handle(self, value: Any) -> Tree:
        """What crosses in place of a value that is neither plain nor a record. Raises NotPlain."""

    @abstractmethod
    def resolve(self, body: Any) -> Any:
        """The value of a handle. Raises NotPlain."""

    @abstractmethod
    def named(self, name: str) -> Any:
        """The builtin of this name. Raises NotPlain."""

    def encode(self, value: Any) -> str:
        """Raises NotPlain."""
        return self._encode(value, Planter(self._foreign))

    def decode(self, text: str | bytes) -> Any:
        """Raises NotPlain."""
        return self._builder.build(parse(text))

    def encode_parts(self, parts: list[Any]) -> str:
        """The contents of containers and records, with references where one holds another."""
        planter = _Linking(self._foreign, {id(part): at for at, part in enumerate(parts)})
        return self._encode([_contents(part) for part in parts], planter)

    def update(self, parts: list[Any], text: str | bytes) -> None:
        """Gives these containers and records the contents in `text`. Raises NotPlain."""
        self._parts = parts
        contents = self.decode(text)
        if type(contents) is not list or len(contents) != len(parts):  # an array that crossed as a list: what became of it is not known
            return
        for part, content in zip(parts, contents, strict=True):
            self._refill(part, content)

    def _encode(self, value: Any, planter: Planter) -> str:
        self._met, self._waiting = {}, []
        root = planter.plant(value, 0)
        table: list[Tree] = []
        while len(table) < len(self._waiting):
            record = self._waiting[len(table)]
            table.append([self.record_name(record), [[key, planter.plant(part, 1)] for key, part in state(record).items()]])
        return dump({"g": [root, table]} if table else root)

    def _foreign(self, value: Any) -> Tree:
        taken = _TAKEN.get(type(value))
        if taken:
            return {"v": [type(value).__name__, Planter(self._foreign).plant(taken(value), 1)]}
        name = getattr(value, "__name__", None) if type(value) in (type, type(len)) else None
        if name is not None and getattr(builtins, name, None) is value:
            return {"y": name}
        if self.record_name(value) is None:
            return self.handle(value)
        if id(value) not in self._met:
            self._met[id(value)] = len(self._waiting)
            self._waiting.append(value)
        return {"o": self._met[id(value)]}

    def _graph(self, body: Any) -> Any:
        root, table = body
        self._makes = [self.new_record(name) for name, _ in table]
        for made, (_, attributes) in zip(self._makes, table, strict=True):
            self.fill(made, {key: self._builder.build(part) for key, part in attributes})
        return self._builder.build(root)

    def _numbered(self, at: int) -> Any:
        return _at(self._makes, at)

    def _part(self, at: int) -> Any:
        return _at(self._parts, at)

    def _value(self, body: Any) -> Any:
        name, parts = body
        try:
            return _MADE[name](*self._builder.build(parts))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise NotPlain(f"broken message: no {str(name)[:20]}: {type(error).__name__}") from None

    def fill(self, record: Any, attributes: dict[str, Any]) -> None:
        """Sets the attributes of a record as they were sent, whatever its class makes of setting one."""
        for key, value in attributes.items():
            object.__setattr__(record, key, value)

    def _refill(self, part: Any, content: Any) -> None:
        if isinstance(part, list):
            part[:] = content
        elif isinstance(part, dict):
            part.clear()
            part.update(content)
        elif isinstance(part, set):
            part.clear()
            part |= set(content)
        else:
            for gone in state(part).keys() - dict(content).keys():
                object.__delattr__(part, gone)
            self.fill(part, dict(content))


class _Linking(Planter):
    def __init__(self, foreign: Callable[[Any], Tree], numbers: dict[int, int]) -> None:
        super().__init__(foreign)
        self.numbers = numbers

    def plant(self, value: Any, depth: int) -> Tree:
        at = self.numbers.get(id(value))
        return super().plant(value, depth) if at is None else {"@": at}


def parts(value: Any, codec: Codec) -> list[Any]:
    """Every list, dict, set and record inside, in an order that is the same on both sides.

    value: has crossed, or is about to, so that it holds no ring but of records.
    """
    return list(_parts(value, codec, set()))


def _parts(value: Any, codec: Codec, seen: set[int]) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        if type(value) is not tuple:
            yield value
        if not set(map(type, value)) <= _LEAVES:
            for item in value:
                yield from _parts(item, codec, seen)
    elif isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _parts(item, codec, seen)
    elif type(value) is set:
        yield value
    elif type(value) not in _LEAVES and id(value) not in seen and codec.record_name(value) is not None:
        waiting = [value]  # a chain of records is long: no recursion along it
        while waiting:
            record = waiting.pop()
            if id(record) in seen:
                continue
            seen.add(id(record))
            yield record
            for item in state(record).values():
                if type(item) in _LEAVES:
                    continue
                if codec.record_name(item) is not None:
                    waiting.append(item)
                else:
                    yield from _parts(item, codec, seen)


_LEAVES = {int, float, str, bool, type(None), bytes, complex}


def _contents(part: Any) -> Any:
    if isinstance(part, list):
        return list(part)
    if isinstance(part, dict):
        return dict(part)
    if isinstance(part, set):
        return list(part)
    return [[key, value] for key, value in state(part).items()]


def state(record: Any) -> dict[str, Any]:
    """The attributes that a record has of its own."""
    found = dict(getattr(record, "__dict__", {}))
    for kind in type(record).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(record, name):
                found[name] = getattr(record, name)
    return found


def _at(of: list[Any], at: Any) -> Any:
    if type(at) is not int or not 0 <= at < len(of):
        raise NotPlain("broken message: a reference to nothing")
    return of[at]
