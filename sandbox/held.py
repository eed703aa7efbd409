"""The program's side of handles: what the tests may do with an object that never leaves the program.

Runs in the program's process; nothing here is trusted.
"""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable
from typing import Any

from sandbox.objects import SPECIAL, Codec
from sandbox.wire import NotPlain, Tree

MOST = 100_000  # objects held at once


class Held(Codec):
    """The objects of a program that its tests hold handles of."""

    def __init__(self, module: types.ModuleType, call_back: Callable[[int, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        """call_back: calls a function of the tests, by its number."""
        super().__init__()
        self.module, self.call_back = module, call_back
        self.functions: dict[int, Callable[..., Any]] = {}
        self.borrowed: dict[int, int] = {}  # id -> number
        self._builder.makers["k"] = self._function
        self.records: set[str] = set()
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.count = 0

    def record_name(self, value: Any) -> str | None:
        name = type(value).__name__
        return name if name in self.records else None

    def new_record(self, name: str) -> Any:
        kind = self.module.__dict__.get(name)
        return object.__new__(kind if isinstance(kind, type) else type(name, (), {}))  # a program that only reads attributes needs no class

    def _function(self, number: int) -> Callable[..., Any]:
        """A function that asks the tests for each call: what it computes, and with what, never comes here."""
        if number not in self.functions:

            def function(*args: Any, **kwargs: Any) -> Any:
                return self.call_back(number, args, kwargs)

            self.functions[number] = function
            self.borrowed[id(function)] = number
        return self.functions[number]

    def handle(self, value: Any) -> Tree:
        if (known := self.borrowed.get(id(value))) is not None:
            return {"k": known}
        number = self.numbers.get(id(value))
        if number is None:
            if len(self.objects) >= MOST:
                raise NotPlain(f"more than {MOST} objects of the program are held by the tests")
            self.count += 1
            number = self.numbers[id(value)] = self.count
            self.objects[number] = value
        kind = type(value)
        if isinstance(value, type) and issubclass(value, BaseException):
            base = next(base for base in value.__mro__ if getattr(builtins, base.__name__, None) is base)
            return {"e": [value.__name__, base.__name__]}
        return {"h": [number, kind.__name__, [name for name in SPECIAL if getattr(kind, name, None) is not getattr(object, name, None)]]}

    def resolve(self, body: Any) -> Any:
        return self.objects[body]

    def named(self, name: str) -> Any:
        return getattr(builtins, name)

    def drop(self, numbers: list[int]) -> None:
        for number in numbers:
            gone = self.objects.pop(number, None)
            self.numbers.pop(id(gone), None)

    def name(self, name: str) -> Any:
        if name not in self.module.__dict__:
            raise NameError(f"name {name!r} is not defined")
        return self.module.__dict__[name]

    def do(self, what: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """One request of the tests: a name of the program, or an operation of OPERATIONS on an object."""
        if what == "name":
            return self.name(args[0])
        return OPERATIONS[what](*args, **kwargs)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda of, *args, **kwargs: of(*args, **kwargs),
    "attribute": getattr, "set": setattr, "delete": delattr,
    "item": operator.getitem, "set_item": operator.setitem, "delete_item": operator.delitem,
    "iter": iter, "next": next, "len": len, "bool": bool, "str": str, "repr": repr, "hash": hash, "int": int, "float": float,
    "round": round, "abs": abs, "neg": operator.neg, "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "eq": operator.eq, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "isinstance": isinstance,
    "enter": lambda of: type(of).__enter__(of), "exit": lambda of: type(of).__exit__(of, None, None, None),
}  # fmt: skip
