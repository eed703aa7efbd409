"""Records: objects of the tests' classes that a program may send, and which of these classes would
let the program decide a test by the attributes it chooses.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from sandbox.child.objects import NAMESPACE, Codec, is_namespace
from sandbox.wire import NotPlain

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
    """Whether the tests' source defines a comparison or conversion of this class itself, instead of
    `dataclass` deriving it from the fields.
    """
    return any(_is_written(getattr(kind, f"__{name}__", None)) for name in _OPERATIONS)


def _is_written(method: Any) -> bool:
    return isinstance(method, types.FunctionType) and method.__code__.co_filename.startswith(
        ("prompt", "test ")
    )


TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range)
}
TYPES |= {"NotImplemented": NotImplemented, "Ellipsis": ...}


class RecordCodec(Codec):
    """The records of a codec: objects of the tests' own classes that a program may send."""

    _records: dict[str, type]  # classes of the tests, by name
    _known: set[str]  # names of records that the program may construct
    _space_name: str  # module of the classes of the tests
    shared: bool  # the verdict depends on what the program itself said

    def record_name(self, value: Any) -> str | None:
        if is_namespace(value):
            return NAMESPACE
        kind = type(value)
        if (
            kind.__module__ == self._space_name
            and not callable(value)
            and not isinstance(value, Iterator)
        ):
            # a class that a function of the tests defines
            self._records.setdefault(kind.__name__, kind)
        if self._records.get(kind.__name__) is not kind:
            return None
        self._known.add(kind.__name__)
        return kind.__name__

    def own_class(self, name: str) -> type | None:
        return self._records.get(name)

    def new_record(self, name: str) -> Any:
        if name == NAMESPACE:
            return types.SimpleNamespace()
        if type(name) is not str or name not in self._known & self._records.keys():
            raise NotPlain("broken message: no such class")
        kind = self._records[name]
        self.shared |= decides(kind)
        return object.__new__(kind)

    def fill(self, record: Any, attributes: dict[str, Any]) -> None:
        """Set the attributes as they were sent, but never in place of a method: the program must
        not decide what the tests' own class computes.
        """
        for key, value in attributes.items():
            if (
                type(key) is not str
                or key.startswith("__")
                or callable(getattr(type(record), key, None))
            ):
                raise NotPlain(f"an attribute that is none: {str(key)[:40]}")
            object.__setattr__(record, key, value)

    def named(self, name: str) -> Any:
        return TYPES[name]
