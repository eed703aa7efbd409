"""What tests hold in place of values that stay with the program: the function under test, and
stand-ins for objects.

A stand-in sends every operation of the tests to the program. The following rules separate what an
answer decides from what a program merely claims:
- An object's attributes are sent along with it. The elements of an iteration and all other answers
  are cached: the same request gets the same answer.
- An operator that would give the program the other operand (==, <, +) is sent only between two
  objects of the program. With plain data, == is False and arithmetic is a TypeError; `in` compares
  the elements in this process.
- An answer sets the trust level "shared" if the program could fit it to what the tests did since it
  returned the object (`Program.weigh` in sandbox/child/connection.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.child.connection import Program

_ABSENT = object()


class TooEarly(Exception):
    """The source of a test uses the program before it is loaded. The source is run again
    afterwards.
    """


class Later:
    """Stands for a name of the program before it is loaded: any use raises TooEarly."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def _too_early(self, *args: Any, **kwargs: Any) -> Any:
        raise TooEarly(self.__name__)

    __call__ = __getattr__ = __iter__ = __getitem__ = __bool__ = __len__ = __eq__ = (
        __mro_entries__
    ) = _too_early  # type: ignore[assignment]
    __hash__ = object.__hash__


class FunctionStub:
    """Stands for the function under test: sends the arguments to the program and returns the
    result.
    """

    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._program.loaded:
            raise TooEarly
        return self._program.call(args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that the program set on its function."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._program.global_name(self.__name__), name)


class Memory:
    """What is known about one object of the program."""

    def __init__(self, number: int, age: int, came_in: int) -> None:
        """age: number of calls of the function under test when the program returned the object.
        came_in: number of the message in which it arrived.
        """
        self.number, self.age, self.came_in = number, age, came_in
        self.sent = ""  # the state as it was sent
        self.state: dict[str, Any] = {}  # the attributes of the object
        self.answers: dict[tuple[Any, ...], Any] = {}
        self.elements: Elements | None = None
        self.is_iterator = self.ended = False


class Elements:
    """The elements of an iterable of the program, each requested once."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source, self._seen = source, list[Any]()

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while True:
            if at == len(self._seen):
                try:
                    self._seen.append(next(self._source))
                except StopIteration:
                    return
            yield self._seen[at]
            at += 1


class StandIn:
    """Stands for an object of the program. Each set of special methods has its own subclass, so
    that Python finds the methods that the object has.
    """

    __slots__ = ("__memory", "__program", "__weakref__")

    def __init__(self, program: Program, memory: Memory) -> None:
        object.__setattr__(self, "_StandIn__program", program)
        object.__setattr__(self, "_StandIn__memory", memory)

    def __getattr__(self, name: str) -> Any:
        # The judge's own machinery must not send requests to a program.
        if name.startswith("__") and name not in ("__name__", "__doc__", "__qualname__"):
            raise AttributeError(name)
        program = program_of(self)
        memory = memory_of(self)
        stored = _ABSENT if program.got_data else memory.state.get(name, _ABSENT)
        if stored is _ABSENT:
            return program.read_cached(self, "attribute", name)
        program.shared |= memory.age < 0
        return stored

    def __setattr__(self, name: str, value: Any) -> None:
        program_of(self).modify("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        program_of(self).modify("delete", self, name)

    def __eq__(self, other: object) -> Any:
        # Python then asks the other operand, and falls back to identity.
        return True if self is other else NotImplemented

    def __hash__(self) -> int:
        return hash(memory_of(self).number)

    def __str__(self) -> str:
        return _text(program_of(self).read_cached(self, "str"))

    def __repr__(self) -> str:
        return _text(program_of(self).read_cached(self, "repr"))

    def __instancecheck__(self, value: object) -> bool:
        return (
            isinstance(value, StandIn)
            and program_of(self).request_untrusted("isinstance", value, self) is True
        )

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError("an object of the program cannot be copied")


def program_of(of: StandIn) -> Program:
    return object.__getattribute__(of, "_StandIn__program")  # type: ignore[no-any-return]


def memory_of(of: StandIn) -> Memory:
    return object.__getattribute__(of, "_StandIn__memory")  # type: ignore[no-any-return]


def _text(answer: Any) -> str:
    if type(answer) is not str:
        raise TypeError("the program's text is no str")
    return answer


def _looks(operation: str) -> Callable[..., Any]:
    return lambda self, *args: program_of(self).read_cached(self, operation, *args)


def _between(operation: str) -> Callable[..., Any]:
    """Make an operator that is sent only if both operands are objects of the program."""

    def ask(self: StandIn, other: object) -> Any:
        if not isinstance(other, StandIn):
            return NotImplemented
        return program_of(self).request_untrusted(operation, self, other)

    return ask


def _equal(self: StandIn, other: object) -> Any:
    if not isinstance(other, StandIn):
        return NotImplemented
    return program_of(self).request_untrusted("eq", self, other) is True


def _call(self: StandIn, *args: Any, **kwargs: Any) -> Any:
    program, memory = program_of(self), memory_of(self)
    if args or kwargs:
        return program.modify("call", self, *args, **kwargs)
    try:
        return program.request_weighed(memory.age, ("call", memory.number), "call", self)
    finally:
        program.got_data = True  # a method may change its object


def _item(self: StandIn, key: Any) -> Any:
    program = program_of(self)
    if isinstance(key, slice):
        bounds = (key.start, key.stop, key.step)
        return (
            program.read_cached(self, "slice", *bounds)
            if set(map(type, bounds)) <= {int, type(None)}
            else program.modify("item", self, key)
        )
    return (
        program.read_cached(self, "item", key)
        if type(key) is int
        else program.modify("item", self, key)
    )


def _iter(self: StandIn) -> Iterator[Any]:
    program, memory = program_of(self), memory_of(self)
    if memory.is_iterator and not memory.ended:
        # not requested: its __iter__ could start over with other elements
        return self  # type: ignore[return-value]
    if memory.elements is None or program.got_data:
        answer = program.request("iter", self)
        if not isinstance(answer, StandIn) or not hasattr(type(answer), "__next__"):
            raise TypeError("the program's iterator is none")
        if answer is self:
            memory.is_iterator = True
            return answer  # type: ignore[return-value]
        memory.elements = Elements(answer)  # type: ignore[arg-type]
    return iter(memory.elements)


def _next(self: StandIn) -> Any:
    program, memory = program_of(self), memory_of(self)
    try:
        answer = program.request_weighed(memory.age, ("next", memory.number), "next", self)
    except StopIteration:
        memory.ended = True
        raise
    # elements after the end: the program knows that it is asked again
    program.shared |= memory.ended
    return answer


_METHODS: dict[str, Callable[..., Any]] = {
    "__iter__": _iter,
    "__next__": _next,
    "__call__": _call,
    "__eq__": _equal,
    "__getitem__": _item,
    "__setitem__": lambda self, key, value: program_of(self).modify("set_item", self, key, value),
    "__delitem__": lambda self, key: program_of(self).modify("delete_item", self, key),
    "__enter__": lambda self: program_of(self).modify("enter", self),
    "__exit__": lambda self, *_: bool(program_of(self).modify("exit", self)) and False,
    **{
        f"__{operation}__": _looks(operation)
        for operation in ("len", "bool", "hash", "int", "index", "float", "round", "abs", "neg")
    },
    **{
        f"__{operation}__": _between(operation)
        for operation in ("lt", "le", "gt", "ge", "add", "sub", "mul")
    },
}
_classes: dict[tuple[str, frozenset[str]], type[StandIn]] = {}


def stand_in_class(name: str, special: frozenset[str]) -> type[StandIn]:
    """Return the class of stand-ins for objects of a type with this name and these
    special methods.
    """
    special &= frozenset(_METHODS)
    if (name, special) not in _classes:
        if len(_classes) > 1000:
            _classes.clear()
        body = {"__hash__": StandIn.__hash__, **{key: _METHODS[key] for key in special}}
        _classes[name, special] = type(
            name, (StandIn,), {"__slots__": (), "__module__": "sandbox.child.proxies", **body}
        )
    return _classes[name, special]
