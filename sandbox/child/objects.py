"""How values that are not plain data cross between the tests of an `assert` job and the program, in
both directions and never by pickle.

- Value types of the standard library cross by value, {"v": [type, parts]}; builtin types and
  functions by name, {"y": name}; numbers of numpy and arrays of them as {"a": [type, nested list]}
  if the other side has numpy, otherwise as Python's.
- A named tuple crosses with its fields, {"n": [class, fields, items]}. A member of an enum of the
  tests, and a class of the tests, cross by name: {"m": [class, member]}, {"l": class}.
- A record is an instance of a class that the tests' own source defines (the ListNode of a prompt),
  or a SimpleNamespace. It crosses by value, {"o": number}. Its class name and attributes are in a
  table next to the message, so that a long chain is not deeply nested and a ring is finite: {"g":
  [tree, table, states, containers]}.
- A function of the tests stays with them and a number crosses in its place, {"k": number}; the
  program may have it called. The same holds for an iterator of the tests, {"j": number}: the
  program requests one element at a time.
- Any other object of a program stays with the program, and a handle crosses in its place, {"h":
  [number, name of its type, its special methods]}. The attributes that the object holds cross by
  value with it, in `states`.
- {"@": number} refers to a part of this call's arguments, which both sides have, or to one of
  `containers`: those that occur more than once, each with its contents. A list that is shared on
  one side is therefore shared on the other. The numbers are valid within one message.

An argument that the program changed in place is sent back part by part.
"""

from __future__ import annotations

import builtins
import copy
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sandbox.child.changed_parts import (
    EMPTY,
    Walk,
    contents,
    is_plain_attribute,
    refill,
    state,
    walked,
)
from sandbox.child.value_types import (
    SUBCLASSES,
    TO_PARTS,
    build_array,
    build_value,
    is_number_of_numpy,
    named_tuple,
    text_name,
)
from sandbox.wire import Builder, NotPlain, Planter, Tree, deep, dump, parse

SPECIAL = (
    "__iter__", "__next__", "__len__", "__bool__", "__getitem__", "__setitem__", "__delitem__",
    "__call__", "__eq__", "__lt__", "__le__", "__gt__",
    "__ge__", "__int__", "__index__", "__float__", "__round__", "__abs__", "__neg__", "__add__",
    "__sub__", "__mul__", "__enter__", "__exit__",
    "__hash__",
)  # fmt: skip
NAMESPACE = "types.SimpleNamespace"  # the only record class that tests need not define
# Elements in the attributes of handles, per message. Attributes beyond that are requested when they
# are needed.
STATE_NODES = 200_000


def encode_result(value: Any) -> tuple[str, bool]:
    """Encode the result of a `call` test. Also return whether it contains numpy types, which cross
    as Python's. Raises NotPlain for anything but plain data, Decimal and Fraction.
    """
    of_numpy = False

    def foreign(value: Any) -> Tree:
        nonlocal of_numpy
        if type(value).__module__ == "numpy":
            of_numpy = True
            return Planter(foreign).plant(value.tolist(), 1)
        if type(value) not in (Decimal, Fraction):
            raise NotPlain(f"{type(value).__name__} is not plain data")
        return {"v": [type(value).__name__, Planter().plant(TO_PARTS[type(value)](value), 1)]}

    return dump(deep(Planter(foreign).plant, value, 0)), of_numpy


class Codec(ABC):
    """Encodes and decodes messages of one side. The abstract methods define how the side handles
    records and handles.
    """

    def __init__(self) -> None:
        self._builder = Builder({
            "g": self._graph, "o": self._numbered, "v": self._value, "y": self.named,
            "n": self._named_tuple, "m": self._member, "l": self._class,
            "a": self._array, "h": self.resolve, "@": self._part,
        })  # fmt: skip
        self._makes: list[Any] = []
        self._parts: list[Any] = []
        self._seen: dict[int, int] = {}
        self._pending: list[Any] = []
        self._planter = Planter()
        # objects whose attributes cross with this message, by number
        self._with_state: dict[int, Any] = {}

    @abstractmethod
    def record_name(self, value: Any) -> str | None:
        """Return the class name under which this object crosses by value, or None if it
        does not.
        """

    @abstractmethod
    def own_class(self, name: str) -> type | None:
        """Return this side's class of this name, or None: the tests' for the tests, the program's
        for the program.
        """

    @abstractmethod
    def new_record(self, name: str) -> Any:
        """Return an empty record of this class. Raises NotPlain."""

    @abstractmethod
    def handle(self, value: Any) -> Tree:
        """Return what crosses in place of a value that is neither plain data nor a record. Raises
        NotPlain.
        """

    @abstractmethod
    def resolve(self, body: Any) -> Any:
        """Return the value of a handle. Raises NotPlain."""

    @abstractmethod
    def named(self, name: str) -> Any:
        """Return the builtin of this name. Raises NotPlain."""

    @abstractmethod
    def numpy(self) -> Any:
        """Return the numpy module, or None if arrays become lists on this side."""

    def attach(self, states: Any) -> None:
        """Store the states of handles: rows of number and attributes. Only the tests' side accepts
        them.
        """
        raise NotPlain("broken message: states where none belong")

    def encode(self, value: Any, shared_parts: Sequence[Any] = (), walk: Walk | None = None) -> str:
        """Encode a value. shared_parts: those that both sides have, to which the text refers.
        walk: of this value, if known. Raises NotPlain.
        """
        return deep(self._encode, value, shared_parts, walk)

    def encode_changed(self, value: Any, shared_parts: Sequence[Any]) -> str:
        """Encode a pair: a value, and the current contents of the given parts."""
        return deep(self._encode, value, shared_parts, None, changed=True)

    def decode(self, text: str | bytes, shared_parts: Sequence[Any] = ()) -> Any:
        """Decode a value. Raises NotPlain."""
        return self._decode(parse(text), shared_parts)

    def update(self, shared_parts: Sequence[Any], changed: Tree) -> Any:
        """Give these containers and records the contents that `encode_changed` sent, and return the
        value sent with them. Raises NotPlain.
        """
        sent = self._decode(changed, shared_parts)
        if (
            type(sent) is not list
            or len(sent) != 2
            or type(sent[1]) is not list
            or len(sent[1]) != len(shared_parts)
        ):
            raise NotPlain("broken message: changes of arguments")
        for part, content in zip(shared_parts, sent[1], strict=True):
            refill(part, content, self.fill)
        return sent[0]

    def blank(self, part: Any) -> Any:
        """Return an empty part of the same kind, to be refilled. Raises NotPlain."""
        name = self.record_name(part)
        return copy.copy(part) if name is None else self.new_record(name)

    def _decode(self, of: Tree, shared_parts: Sequence[Any]) -> Any:
        """Decode one message. Its parts and records are forgotten afterwards, so that no later
        message can name them.
        """
        self._parts = list(shared_parts)
        try:
            return deep(self._builder.build, of)
        finally:
            self._parts, self._makes = [], []

    def _encode(
        self, value: Any, shared_parts: Sequence[Any], walk: Walk | None, *, changed: bool = False
    ) -> str:
        self._seen, self._pending, self._with_state = {}, [], {}
        found, again = walk or walked(
            [value, *map(contents, shared_parts)] if changed else value, self.record_name
        )
        numbers: dict[int, int] = {}
        if again or (shared_parts and found):
            known = {id(part): at for at, part in enumerate(shared_parts)}
            again = [part for part in again if id(part) not in known]
            numbers = {id(part): known[id(part)] for part in found if id(part) in known} | {
                id(part): at for at, part in enumerate(again, len(shared_parts))
            }
        planter = self._planter = (
            _Linking(self._foreign, self._subclass, numbers)
            if numbers
            else Planter(self._foreign, self._subclass)
        )
        root = planter.plant(value, 0)
        if changed:
            root = [root, [planter.plant(contents(part), 1) for part in shared_parts]]
        containers = [[type(part).__name__, planter.plant(contents(part), 1)] for part in again]
        table, rows = self._tables(planter) if self._pending or self._with_state else ([], [])
        return dump({"g": [root, table, rows, containers]} if table or rows or containers else root)

    def _tables(self, planter: Planter) -> tuple[list[Tree], list[Tree]]:
        """Return the records that a message names, and the states of the objects that stay here;
        each may name more.
        """
        states = Planter(self._foreign, self._subclass, STATE_NODES)
        table: list[Tree] = []
        rows: dict[int, Tree] = {}
        while True:
            for record in self._pending[len(table) :]:
                table.append(
                    [
                        self.record_name(record),
                        [[key, planter.plant(part, 1)] for key, part in state(record).items()],
                    ]
                )
            more = {number: held for number, held in self._with_state.items() if number not in rows}
            for number, held in more.items():
                rows[number] = self._state_row(number, held, states)
            if not more and len(table) == len(self._pending):
                return table, list(rows.values())

    def _state_row(self, number: int, held: Any, planter: Planter) -> Tree:
        """Return the attributes of an object that stays here, or none if there are too many."""
        try:
            return [
                number,
                [
                    [key, planter.plant(part, 1)]
                    for key, part in state(held).items()
                    if is_plain_attribute(type(held), key)
                ],
            ]
        except NotPlain:
            return [number, []]

    def _foreign(self, value: Any) -> Tree:
        kind = type(value)
        if taken := TO_PARTS.get(kind):
            return {"v": [kind.__name__, self._plant_parts(taken, value)]}
        if name := text_name(value):
            return {"v": [name, [str(value)]]}
        if kind.__module__ == "numpy":
            items = self._plant_parts(lambda v: v.tolist(), value)
            return {"a": [value.dtype.name, items]} if is_number_of_numpy(value) else items
        if value is NotImplemented or value is ...:
            return {"y": "NotImplemented" if value is NotImplemented else "Ellipsis"}
        name = getattr(value, "__name__", None) if kind in (type, type(len)) else None
        if name is not None and getattr(builtins, name, None) is value:
            return {"y": name}
        if (member := self._enum_member(value)) is not None:
            return member
        if self.record_name(value) is None:
            return self.handle(value)
        if id(value) not in self._seen:
            self._seen[id(value)] = len(self._pending)
            self._pending.append(value)
        return {"o": self._seen[id(value)]}

    def _subclass(self, value: Any) -> Tree:
        """Return the tree of an instance of a subclass of a plain type, if it keeps what the
        subclass adds; otherwise None, and it crosses as its base.
        """
        kind = type(value)
        if taken := SUBCLASSES.get(kind):
            return {"v": [kind.__name__, self._plant_parts(taken, value)]}
        fields = getattr(kind, "_fields", None)
        if (
            isinstance(value, tuple)
            and type(fields) is tuple
            and len(fields) == len(value)
            and set(map(type, fields)) <= {str}
        ):
            return {"n": [kind.__name__, list(fields), self._plant_parts(list, value)]}
        return self._enum_member(value)

    def _enum_member(self, value: Any) -> Tree:
        kind = type(value)
        known = (
            hasattr(kind, "__members__")
            and self.own_class(kind.__name__) is kind
            and getattr(value, "name", None) in kind.__members__
        )
        return {"m": [kind.__name__, value.name]} if known else None

    def _plant_parts(self, taken: Callable[[Any], list[Any]], value: Any) -> Tree:
        try:
            return self._planter.plant(taken(value), 1)
        except ValueError as error:  # a closed buffer
            raise NotPlain(f"{type(value).__name__}: {error}") from None

    def _graph(self, body: Any) -> Any:
        root, table, states, containers = body
        self._makes = [self.new_record(name) for name, _ in table]
        again = [EMPTY[kind]() for kind, _ in containers]
        self._parts += again
        for record, (_, attributes) in zip(self._makes, table, strict=True):
            self.fill(record, {key: self._builder.build(part) for key, part in attributes})
        for part, (_, content) in zip(again, containers, strict=True):
            refill(part, self._builder.build(content), self.fill)
        value = self._builder.build(root)
        if states:
            self.attach(states)
        return value

    def _numbered(self, at: int) -> Any:
        return _at(self._makes, at)

    def _part(self, at: int) -> Any:
        return _at(self._parts, at)

    def _value(self, body: Any) -> Any:
        name, parts = body
        return build_value(name, self._builder.build(parts))

    def _named_tuple(self, body: Any) -> Any:
        name, fields, items = body
        kind = self.own_class(name) if type(name) is str else None
        if getattr(kind, "_fields", None) != tuple(fields):
            kind = named_tuple(name, tuple(fields))
        result: tuple[Any, ...] = tuple.__new__(kind, self._builder.build(items))  # type: ignore[arg-type]
        if any(
            field in ("count", "index") and callable(item)
            for field, item in zip(fields, result, strict=False)
        ):
            raise NotPlain("a named tuple with other methods")
        return result

    def _array(self, body: Any) -> Any:
        kind, nested = body
        items, numpy = self._builder.build(nested), self.numpy()
        return items if numpy is None else build_array(numpy, kind, items)

    def _class(self, name: Any) -> type:
        if type(name) is not str or (found := self.own_class(name)) is None:
            raise NotPlain(f"no class {str(name)[:40]} here")
        return found

    def _member(self, body: Any) -> Any:
        name, member = body
        members = getattr(self._class(name), "__members__", {})
        if member not in members:
            raise NotPlain(f"broken message: no {str(name)[:20]}")
        return members[member]

    def fill(self, record: Any, attributes: dict[str, Any]) -> None:
        """Set the attributes of a record as they were sent, bypassing the `__setattr__` of its
        class.
        """
        for key, value in attributes.items():
            object.__setattr__(record, key, value)


class _Linking(Planter):
    """Plants a reference in place of each part."""

    def __init__(
        self,
        foreign: Callable[[Any], Tree],
        subclass: Callable[[Any], Tree],
        numbers: dict[int, int],
    ) -> None:
        super().__init__(foreign, subclass)
        self.numbers = numbers

    def plant(self, value: Any, depth: int) -> Tree:
        at = self.numbers.get(id(value))
        return super().plant(value, depth) if at is None else {"@": at}


def is_namespace(value: Any) -> bool:
    return type(value) is types.SimpleNamespace


def _at(of: list[Any], at: Any) -> Any:
    if type(at) is not int or not 0 <= at < len(of):
        raise NotPlain("broken message: a reference to nothing")
    return of[at]
