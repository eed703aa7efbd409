"""Classes of the tests whose objects a program may send: which of them would let it decide by the attributes that it chooses."""

from __future__ import annotations

import types
from typing import Any

_OPERATIONS = (
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "contains",
    "bool",
    "len",
    "iter",
    "getitem",
    "int",
    "float",
    "str",
    "repr",
)


def decides(kind: type) -> bool:
    """Whether a comparison or conversion of this class is written out in the tests' text, and not what `dataclass` makes of the fields."""
    return any(_is_written(getattr(kind, f"__{name}__", None)) for name in _OPERATIONS)


def _is_written(method: Any) -> bool:
    return isinstance(method, types.FunctionType) and method.__code__.co_filename.startswith(
        ("prompt", "test ")
    )
