"""Arguments that a program changed in place, and values with shared parts: finds the parts that can
change or occur repeatedly, and reads and refills their contents.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from sandbox.child.value_types import BUFFERS, filled, is_array

# Returns the class name under which an object crosses by value, or None.
RecordName = Callable[[Any], str | None]
Walk = tuple[list[Any], list[Any]]


def parts(value: Any, record_name: RecordName) -> list[Any]:
    """Return every mutable container, buffer and record inside, each once, in an order that is the
    same on both sides.
    """
    return walked(value, record_name)[0]


def walked(value: Any, record_name: RecordName) -> Walk:
    """Return the parts, and the lists, dicts, sets and bytearrays that occur more than once: in two
    places, or inside themselves.
    """
    parts: list[Any] = []
    repeated: dict[int, Any] = {}
    seen: set[int] = set()
    pending = [] if type(value) in _LEAVES else [value]
    while pending:  # No recursion: this runs for each message, and a chain of records can be long.
        part = pending.pop()
        kind = type(part)
        if kind is not tuple and id(part) in seen:
            repeated[id(part)] = part
            continue
        items = (
            part if kind is list else part.values() if kind is dict else _items(part, record_name)
        )
        if items is None:
            continue
        if not isinstance(part, tuple):
            seen.add(id(part))
            parts.append(part)
        if not _LEAVES.issuperset(map(type, items)):
            pending += [item for item in items if type(item) not in _LEAVES][::-1]
    return parts, [
        part for part in repeated.values() if any(type(part) is kind for kind in EMPTY.values())
    ] if repeated else []


def _items(part: Any, record_name: RecordName) -> Collection[Any] | None:
    """Return what a part contains; None for a value that is not a part."""
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
    """Give a part these contents. fill: sets the attributes of a record; missing ones are deleted
    here.
    """
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
    """Return the attributes that an object itself holds, including slots."""
    found = dict(getattr(record, "__dict__", {}))
    for kind in type(record).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(record, name):
                found[name] = getattr(record, name)
    return found


def is_plain_attribute(kind: type, name: str) -> bool:
    """Whether this attribute is not computed by a property or another descriptor of the class."""
    found = next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)
    return isinstance(found, types.MemberDescriptorType) or not hasattr(type(found), "__set__")
