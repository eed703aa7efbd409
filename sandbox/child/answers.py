"""The answers to the questions of a split unittest (sandbox/decoys/split.py): how the program's
process sends them, and how a judge's process decides about them.

They cross as plain data and value types of the standard library, numbers of numpy as Python's. An
array of numpy or pandas becomes a list, any other value an object that equals nothing. Both are
marked.
"""

from __future__ import annotations

import builtins
import types
from collections import UserDict, UserList, UserString
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from operator import eq
from typing import Any

from sandbox.child.value_types import SUBCLASSES, TO_PARTS, build_value, text_name
from sandbox.wire import Builder, NotPlain, Planter, Tree, deep, dump, parse

FALSE = "no such answer"
# Marks of values that a judge gets as something else: arrays, and what cannot be sent. Text cannot
# contain one, because its quotes are escaped.
INEXACT = (b'"n":', b'"u":')
EXACT_KINDS = "biufcUS"  # of numpy's types: numbers and text
MAX_NAMED = 3
TIMES = (date, time, datetime, timedelta)


class OpaqueValue:
    """Stands for a value that cannot be sent."""

    def __repr__(self) -> str:
        return "an object without a plain value"


class Elements(list[Any]):
    """Stands for an array: `==` compares each element, as numpy does, also with a single value."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        others = other if isinstance(other, (list, tuple)) else [other] * len(self)
        return Truths(map(eq, self, others) if len(others) == len(self) else ())


class Truths:
    """The result of such a comparison. It is true if it is not empty and all of it is true: an
    empty array equals no expected value.
    """

    def __init__(self, truths: Iterable[Any]) -> None:
        self._truths = [*map(bool, truths)] or [False]

    def __bool__(self) -> bool:
        return all(self._truths)

    def __iter__(self) -> Iterator[bool]:
        return iter(self._truths)


class Raising:
    """`with _raising() as caught:` in the program's process. It sends the classes of what is raised
    inside, and suppresses the exception.
    """

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self._tell = tell
        self.exception: BaseException | None = None

    def __enter__(self) -> Raising:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        self.exception = error.with_traceback(None) if error else None
        self._tell(kinds(error) if kind else [])
        return True


def kinds(value: Any) -> list[str]:
    """Return the names of the classes of which this is an instance."""
    return [_full_name(base) for kind in {type(value), value.__class__} for base in kind.__mro__]


def encode_answer(value: Any) -> str:
    """Encode an answer. Raises NotPlain if it is too deep or too long."""
    return dump(deep(Planter(_foreign, _subclass).plant, value, 0))


def _foreign(value: Any) -> Tree:
    kind = type(value)
    try:
        for base in kind.__mro__:
            if to_parts := TO_PARTS.get(base):
                parts = to_parts(value)
                may_differ = kind is not base and base in TIMES  # pandas has nanoseconds and NaT
                if may_differ and build_value(base.__name__, parts) != value:
                    break
                return {"v": [base.__name__, Planter(_foreign, _subclass).plant(parts, 1)]}
        # equal to what they contain
        if isinstance(value, (UserDict, UserList, UserString, types.MappingProxyType)):
            return Planter(_foreign, _subclass).plant(
                value.copy() if isinstance(value, types.MappingProxyType) else value.data, 1
            )
        name = value.__name__ if kind in (type, types.BuiltinFunctionType) else ""
        if name and vars(builtins).get(name) is value:
            return {"y": name}
        if text := text_name(value):
            return {"v": [text, [str(value)]]}
        if kind.__module__.partition(".")[0] in ("numpy", "pandas"):
            return _of_numpy(value)
    except ValueError:  # a closed buffer, a time that cannot be rebuilt
        pass
    return {"u": kind.__name__}


def _of_numpy(value: Any) -> Tree:
    """Return the tree of a value of numpy or pandas: a number, a type's name, or a list of what it
    holds. A DataFrame holds its columns' names, as for Python's `in`.
    """
    kind = type(value).__name__
    if "dtype" in kind.lower():
        return {"n": str(value)}
    listed = list(value) if kind == "DataFrame" else getattr(value, "tolist", lambda: value)()
    if type(listed) is type(value):  # a long double
        return {"u": kind}
    tree = Planter(_foreign, _subclass).plant(listed, 1)
    return tree if type(listed) is not list and value.dtype.kind in EXACT_KINDS else {"n": tree}


def _subclass(value: Any) -> Tree:
    to_parts = SUBCLASSES.get(type(value))
    return (
        {"v": [type(value).__name__, Planter(_foreign, _subclass).plant(to_parts(value), 1)]}
        if to_parts
        else None
    )


def decide(checks: str, messages: list[bytes]) -> tuple[str, str]:
    """Run the judge's part of a method on the answers of the program's process. Returns the verdict
    and the reason.
    """
    import unittest  # needed by few judges, so not preloaded for all of them

    answers = iter(messages)
    builder = Builder()
    opaque: list[str] = []  # names of types that could not be sent

    def opaque_value(kind: Any) -> OpaqueValue:
        if len(opaque) < MAX_NAMED and isinstance(kind, str) and kind[:60] not in opaque:
            opaque.append(kind[:60])
        return OpaqueValue()

    def of_array(value: Any) -> Any:
        return Elements(value) if isinstance(value, list) else value

    builder.makers |= {
        "v": lambda body: build_value(body[0], builder.build(body[1])),
        "n": lambda body: of_array(builder.build(body)),
        "u": opaque_value,
        "y": _builtin,
    }

    def next_answer() -> Any:
        if (answer := next(answers, None)) is None:
            raise AssertionError(FALSE)
        return deep(builder.build, parse(answer))

    def check_kind(names: Any, kinds: Any) -> None:
        expected = {_full_name(kind) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))}
        if not isinstance(names, list) or not expected & {
            name for name in names if isinstance(name, str)
        }:
            raise AssertionError("of another kind")

    space: dict[str, Any] = {
        "__name__": "checks",
        "_TestCase": unittest.TestCase,
        "_asked": next_answer,
        "_check_kind": check_kind,
    }
    try:
        # takes minutes on long lists, and nobody reads it
        unittest.case.difflib = types.SimpleNamespace(ndiff=lambda *_: ())  # type: ignore[attr-defined]
        exec(compile(checks, "checks", "exec", dont_inherit=True), space)
        (case,) = (
            kind
            for kind in space.values()
            if isinstance(kind, type)
            and issubclass(kind, unittest.TestCase)
            and "runTest" in vars(kind)
        )
        case().runTest()  # type: ignore[attr-defined]
        if next(answers, None) is not None:
            raise AssertionError(FALSE)
    except NotPlain as error:
        return "RE", str(error)[:300]
    except BaseException as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        return "WA", f"{why} (not sent as data: {', '.join(opaque)})" if opaque else why
    return "AC", ""


def _builtin(name: Any) -> Any:
    value = getattr(builtins, str(name), None)
    return value if isinstance(value, (type, types.BuiltinFunctionType)) else OpaqueValue()


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
