"""Arguments that a program changed in place, and values with shared parts: which parts can change, which are met again, and what is in them."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from sandbox.value_types import BUFFERS, filled, is_array

RecordName = Callable[
    [Any], str | None
]  # the class name under which an object crosses by value, or None
Walk = tuple[list[Any], list[Any]]


def parts(value: Any, record_name: RecordName) -> list[Any]:
    """Every container that can change, buffer and record inside, each once, in an order that is the same on both sides."""
    return walked(value, record_name)[0]


def walked(value: Any, record_name: RecordName) -> Walk:
    """The same, and the lists, dicts, sets and bytearrays that are met more than once: shared by two places, or inside themselves."""
    found: list[Any] = []
    again: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [] if type(value) in _LEAVES else [value]
    while waiting:  # no recursion: this is part of each message, and a chain of records is long
        part = waiting.pop()
        kind = type(part)
        if kind is not tuple and id(part) in seen:
            again[id(part)] = part
            continue
        items = (
            part if kind is list else part.values() if kind is dict else _items(part, record_name)
        )
        if items is None:
            continue
        if not isinstance(part, tuple):
            seen.add(id(part))
            found.append(part)
        if not _LEAVES.issuperset(map(type, items)):
            waiting += [item for item in items if type(item) not in _LEAVES][::-1]
    return found, [
        part for part in again.values() if any(type(part) is kind for kind in EMPTY.values())
    ] if again else []


def _items(part: Any, record_name: RecordName) -> Collection[Any] | None:
    """What a part holds; None for what is no part."""
    if isinstance(part, (tuple, list, deque)):
        return part
    if isinstance(part, dict):
        return part.values()
    if type(part) in (set, bytearray) or isinstance(part, BUFFERS) or is_array(part):
        return ()
    return state(part).values() if record_name(part) is not None else None


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
