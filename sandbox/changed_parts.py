"""Arguments that a program changed in place, and values with shared parts: which parts can change, which are met again, and what is in them."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from sandbox.value_types import BUFFERS, filled, is_array
from sandbox.wire import deep

RecordName = Callable[[Any], str | None]  # the class name under which an object crosses by value, or None


def parts(value: Any, record_name: RecordName) -> list[Any]:
    """Every container that can change, buffer and record inside, each once, in an order that is the same on both sides."""
    return walked(value, record_name)[0]


def walked(value: Any, record_name: RecordName) -> tuple[list[Any], list[Any]]:
    """The same, and the lists, dicts, sets and bytearrays that are met more than once: shared by two places, or inside themselves."""
    return deep(_walked, value, record_name)


def _walked(value: Any, record_name: RecordName) -> tuple[list[Any], list[Any]]:
    walk = _Walk(record_name)
    walk.visit(value)
    return walk.found, [part for part in walk.again.values() if type(part).__name__ in EMPTY and type(part) is EMPTY[type(part).__name__]]


class _Walk:
    def __init__(self, record_name: RecordName) -> None:
        self.record_name = record_name
        self.found: list[Any] = []
        self.again: dict[int, Any] = {}
        self._seen: set[int] = set()

    def visit(self, value: Any) -> None:
        if isinstance(value, tuple):
            self._visit_all(value)
        elif isinstance(value, (list, deque)):
            if self._is_new(value):
                self._visit_all(value)
        elif isinstance(value, dict):
            if self._is_new(value):
                self._visit_all(value.values())
        elif type(value) in (set, bytearray) or isinstance(value, BUFFERS) or is_array(value):
            self._is_new(value)
        elif type(value) not in _LEAVES and id(value) not in self._seen and self.record_name(value) is not None:
            self._visit_records(value)

    def _visit_all(self, items: Collection[Any]) -> None:
        if not set(map(type, items)) <= _LEAVES:
            for item in items:
                self.visit(item)

    def _is_new(self, part: Any) -> bool:
        if id(part) in self._seen:
            self.again[id(part)] = part
            return False
        self._seen.add(id(part))
        self.found.append(part)
        return True

    def _visit_records(self, first: Any) -> None:
        waiting = [first]  # a chain of records is long: no recursion along it
        while waiting:
            record = waiting.pop()
            if id(record) in self._seen:
                continue
            self._is_new(record)
            for item in state(record).values():
                if type(item) in _LEAVES:
                    continue
                if self.record_name(item) is not None:
                    waiting.append(item)
                else:
                    self.visit(item)


EMPTY: dict[str, type] = {kind.__name__: kind for kind in (list, dict, set, bytearray)}
_LEAVES = {int, float, str, bool, type(None), bytes, complex}


def contents(part: Any) -> Any:
    if isinstance(part, (list, deque)):
        return list(part)
    if isinstance(part, bytearray):
        return bytes(part)
    if isinstance(part, dict):
        return dict(part)
    if isinstance(part, set):
        return list(part)
    if isinstance(part, BUFFERS):
        return [part.getvalue(), part.tell()]
    if is_array(part):
        return part.copy()
    return [[key, value] for key, value in state(part).items()]


def refill(part: Any, content: Any, fill: Callable[[Any, dict[str, Any]], None]) -> None:
    """Gives a part these contents. fill: sets the attributes of a record; those that are gone are deleted here."""
    if isinstance(part, (list, bytearray)):
        part[:] = content
    elif isinstance(part, deque):
        part.clear()
        part.extend(content)
    elif isinstance(part, dict):
        part.clear()
        part.update(content)
    elif isinstance(part, set):
        part.clear()
        part |= set(content)
    elif isinstance(part, BUFFERS):
        part.seek(0)
        part.truncate()
        filled(part, *content)
    elif is_array(part):
        part[...] = content
    else:
        for gone in state(part).keys() - dict(content).keys():
            object.__delattr__(part, gone)
        fill(part, dict(content))


def state(record: Any) -> dict[str, Any]:
    """The attributes that an object holds itself, those of its slots among them."""
    found = dict(getattr(record, "__dict__", {}))
    for kind in type(record).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(record, name):
                found[name] = getattr(record, name)
    return found


def is_plain_attribute(kind: type, name: str) -> bool:
    """Whether no property or the like of the class answers for this attribute."""
    found = next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)
    return isinstance(found, types.MemberDescriptorType) or not hasattr(type(found), "__set__")
