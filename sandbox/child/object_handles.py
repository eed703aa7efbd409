"""The program's side of handles: what the tests may do with an object that never leaves the
program.

Runs in the program's process; nothing here is trusted.
"""

from __future__ import annotations

import builtins
import importlib
import operator
import types
from collections.abc import Callable
from functools import cached_property
from typing import Any

from sandbox.child.objects import NAMESPACE, SPECIAL, Codec, is_namespace
from sandbox.wire import NotPlain, Tree, encode

MAX_OBJECTS = 100_000  # objects with handles at the same time
MAX_STATES = 10_000  # objects whose attributes cross with one message


class Unstable(RuntimeError):
    """An object of the program gives different answers to the same request."""


class ObjectHandles(Codec):
    """The objects of a program for which its tests have handles."""

    def __init__(
        self,
        module: types.ModuleType,
        call_back: Callable[[int, tuple[Any, ...], dict[str, Any]], Any],
    ) -> None:
        """call_back: calls a function of the tests, by its number."""
        super().__init__()
        self.module, self.call_back = module, call_back
        self.captured = False  # whether to send what a call prints
        self.records: set[str] = set()
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.count = 0
        self._lent: dict[int, Any] = {}  # functions and iterators of the tests, by number
        # the same by id, in the form in which they cross back
        self._lent_trees: dict[int, Tree] = {}
        self._builder.makers |= {"k": self._function, "j": self._iterator}

    def record_name(self, value: Any) -> str | None:
        name = NAMESPACE if is_namespace(value) else type(value).__name__
        return name if name in self.records or name is NAMESPACE else None

    def own_class(self, name: str) -> type | None:
        value = self.module.__dict__.get(name) if name in self.records else None
        return value if isinstance(value, type) else None

    def new_record(self, name: str) -> Any:
        if name == NAMESPACE:
            return types.SimpleNamespace()
        # A program that only reads attributes needs no class.
        return object.__new__(self.own_class(name) or type(name, (), {}))

    def _function(self, number: int) -> Any:
        """Make a function that has each call run by the tests: its code and its values never reach
        this process.
        """

        def function(*args: Any, **kwargs: Any) -> Any:
            return self.call_back(number, args, kwargs)

        return self._lend(number, function, {"k": number})

    def _iterator(self, number: int) -> Any:
        """Make an iterator that requests each element from the tests."""
        return self._lend(
            number, LentIterator(lambda: self.call_back(number, (), {})), {"j": number}
        )

    def _lend(self, number: int, stand_in: Any, tree: Tree) -> Any:
        if number not in self._lent:
            self._lent[number] = stand_in
            self._lent_trees[id(stand_in)] = tree
        return self._lent[number]

    def handle(self, value: Any) -> Tree:
        if (lent := self._lent_trees.get(id(value))) is not None:
            return lent
        number = self.numbers.get(id(value))
        if number is None:
            if len(self.objects) >= MAX_OBJECTS:
                raise NotPlain(
                    f"more than {MAX_OBJECTS} objects of the program are held by the tests"
                )
            self.count += 1
            number = self.numbers[id(value)] = self.count
            self.objects[number] = value
        kind = type(value)
        if isinstance(value, type) and issubclass(value, BaseException):
            return {"e": [value.__name__, bases_of(value)]}
        if isinstance(value, BaseException):
            return {"x": exception_tree(value)}
        if kind is types.CoroutineType or kind is types.AsyncGeneratorType:
            return {"c" + ("o" if kind is types.CoroutineType else "g"): number}
        if _holds_its_attributes(kind) and len(self._with_state) < MAX_STATES:
            self._with_state[number] = value
        return {
            "h": [
                number,
                kind.__name__,
                [
                    name
                    for name in SPECIAL
                    if getattr(kind, name, None) is not getattr(object, name, None)
                ],
            ]
        }

    def resolve(self, body: Any) -> Any:
        return self.objects[body]

    def named(self, name: str) -> Any:
        return getattr(builtins, name)

    def numpy(self) -> Any:
        try:
            return importlib.import_module("numpy")
        except ImportError:
            return None

    def drop(self, numbers: list[int]) -> None:
        for number in numbers:
            value = self.objects.pop(number, None)
            self.numbers.pop(id(value), None)

    def name(self, name: str) -> Any:
        if name not in self.module.__dict__:
            raise NameError(f"name {name!r} is not defined")
        return self.module.__dict__[name]

    @cached_property
    def event_loop(self) -> Any:
        import asyncio

        return asyncio.new_event_loop()

    def do(self, operation: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Execute one request of the tests: a name of the program, or an operation on an object.
        Raises Unstable if a second read gives another value.
        """
        if operation == "name":
            return self.name(args[0])
        if operation == "await":
            awaited = self.objects[args[0]]
            return self.event_loop.run_until_complete(
                awaited if isinstance(awaited, types.CoroutineType) else awaited.__anext__()
            )
        if operation in ACTIONS:
            return ACTIONS[operation](*args, **kwargs)
        answer, repeated = READS[operation](*args), READS[operation](*args)
        try:
            stable = encode(answer) == encode(repeated)
        except NotPlain:
            # A handle: the object behind it may be a new one each time, as for bound methods.
            stable = True
        if not stable:
            raise Unstable(
                f"{operation} of {type(args[0]).__name__} changes from one look to the next"
            )
        return answer


class LentIterator:
    """An iterator of the tests."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask

    def __iter__(self) -> LentIterator:
        return self

    def __next__(self) -> Any:
        return self._ask()


def exception_tree(error: BaseException) -> list[Tree]:
    """Return name, message, whether memory ran out, and bases; if they are plain data, also the
    encoded arguments and attributes.
    """
    carried: list[Tree] = []
    for part in (list(error.args), vars(error)):
        try:
            carried.append(encode(part))
        except NotPlain:
            carried.append(None)
    return [*exception_fields(error), bases_of(type(error)), *carried]


def exception_fields(error: BaseException) -> list[Tree]:
    """Return name, message, and whether memory ran out."""
    try:
        text = str(error)[:300]
    except BaseException:  # raised by __str__ of a program's own class
        text = ""
    return [type(error).__name__, text, isinstance(error, MemoryError)]


def bases_of(kind: type) -> list[Tree]:
    """Return the exceptions that this class derives from: a builtin one by name, another by name
    and bases.
    """
    bases = [base for base in kind.__bases__ if issubclass(base, BaseException)]
    return [
        base.__name__
        if getattr(builtins, base.__name__, None) is base
        else [base.__name__, bases_of(base)]
        for base in bases
    ]


def _holds_its_attributes(kind: type) -> bool:
    """Whether reading an attribute of such an object only looks up a stored value: an instance of a
    plain class of the program.
    """
    return (
        kind.__module__ in ("program", "__main__")
        and not issubclass(kind, type)
        and kind.__getattribute__ is object.__getattribute__
    )


ACTIONS: dict[str, Callable[..., Any]] = {
    "call": lambda of, *args, **kwargs: of(*args, **kwargs),
    "set": setattr, "delete": delattr, "set_item": operator.setitem,
    "delete_item": operator.delitem, "iter": iter, "next": next,
    "enter": lambda of: type(of).__enter__(of),
    "exit": lambda of: type(of).__exit__(of, None, None, None),
}  # fmt: skip
READS: dict[str, Callable[..., Any]] = {
    "attribute": getattr, "item": operator.getitem, "slice": lambda of, *bounds: of[slice(*bounds)],
    "len": len, "bool": bool, "hash": hash,
    "str": str, "repr": repr, "int": int, "float": float, "index": operator.index, "round": round,
    "abs": abs, "neg": operator.neg,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "eq": operator.eq,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "isinstance": isinstance,
}  # fmt: skip
