"""The judge's side of a program: the function under test, and stand-ins for objects that stay with the program.

A stand-in asks the program for whatever the tests do with it. Two rules keep what an answer decides apart from what a program may claim:
- an operator that would hand the program the other operand (==, <, +, in) is asked only between two objects of the program: with plain data, == is
  False, arithmetic is a TypeError, `in` goes through the elements here;
- a comparison between two objects of the program, the truth or length of one, and any plain answer after the tests told an object something, are
  the program's word: they set `shared`, and the report says so.

A function of the tests that the program is given stays here too: the program gets one that asks, and what it asks is answered while its own answer is
waited for. So it runs where its test runs, and an assertion that fails in it decides the test, whatever the program makes of the exception.
"""

from __future__ import annotations

import builtins
import socket
import struct
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from sandbox.objects import SPECIAL, Codec, parts
from sandbox.wire import MAX_FRAME, NotPlain, Tree, dump, frame, parse

MOST = 100_000
DEEPEST = 50  # calls of the tests' functions inside each other
TYPES = {kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range)}


class ProgramGone(BaseException):
    """The program's process no longer answers. A BaseException: tests that catch Exception must not take it for an answer."""


class ProgramRaised(Exception):
    """The program raised something that is no builtin exception and that the tests do not know."""


class NoResult(ProgramRaised):
    """The program's answer cannot cross."""


class Program(Codec):
    """The connection to the program's process. Of one test at a time: `begin` before each."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        super().__init__()
        self._connection = connection
        self.candidate = Candidate(self, name)
        self.raised: BaseException | None = None
        self.gone = False
        self.loaded = False
        self.shared = False
        self._told = False
        self._records: dict[str, type] = {}
        self._announced: set[str] = set()
        self._exceptions: dict[str, type] = {}
        self._stand_ins: weakref.WeakValueDictionary[int, StandIn] = weakref.WeakValueDictionary()
        self._dead: set[int] = set()
        self._lent: dict[int, Callable[..., Any]] = {}  # functions of this test that the program may call, by the numbers it knows them by
        self._count = self._depth = 0
        self.failed: AssertionError | None = None  # raised by one of them
        self._builder.makers |= {"e": self._exception, "k": lambda number: self._lent[number]}

    def begin(self, space: dict[str, Any]) -> None:
        """A test with this name space: classes of its text are records."""
        self.shared = self._told = False
        self.failed = None
        self._lent.clear()
        self._records = {name: value for name, value in space.items() if isinstance(value, type) and value.__module__ == space["__name__"]}
        if self._records.keys() - self._announced:
            self._announced |= self._records.keys()
            self._send(self.encode(["records", sorted(self._announced)]))

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function under test; what it changed in its arguments is changed here."""
        self._send(self.encode([list(args), kwargs]))
        kind, body = self._reply()
        if kind == b"M":
            self.update(parts([list(args), kwargs], self), body)
            return None
        return self._answer(kind, body)

    def ask(self, what: str, *args: Any, **kwargs: Any) -> Any:
        if not self.loaded:
            raise TooEarly
        if len(self._dead) >= 1000:
            self._send(self.encode(["drop", sorted(self._dead)]))
            self._dead.clear()
        self._send(self.encode([what, list(args), kwargs]))
        return self._answer(*self._reply())

    def global_name(self, name: str) -> Any:
        """What the program calls by a name that the tests use and do not define. Raises NameError."""
        answer = self.ask("name", name)
        if not isinstance(answer, (StandIn, type)):
            self.shared = True
        return answer

    def told(self, answer: Any) -> Any:
        """Marks that the tests have told an object something: its plain answers are its word from now on."""
        self._told = True
        return self.read(answer)

    def read(self, answer: Any) -> Any:
        if self._told and answer is not None and not isinstance(answer, StandIn):
            self.shared = True
        return answer

    def judged_by_itself(self, answer: Any) -> Any:
        self.shared = True
        return answer

    def receive(self) -> tuple[bytes, bytes]:
        try:
            (length,) = struct.unpack(">I", self._exactly(4))
            if not 1 <= length <= MAX_FRAME:
                raise ProgramGone
            message = self._exactly(length)
        except (ProgramGone, OSError):
            self.gone = True
            raise ProgramGone from None
        return message[:1], message[1:]

    def record_name(self, value: Any) -> str | None:
        name = type(value).__name__
        return name if self._records.get(name) is type(value) else None

    def new_record(self, name: str) -> Any:
        if type(name) is not str or name not in self._records:
            raise NotPlain("broken message: no such class")
        return object.__new__(self._records[name])

    def fill(self, record: Any, attributes: dict[str, Any]) -> None:
        """As it was sent, but no attribute takes the place of a method: what the tests' own class computes is not for the program to say."""
        for key, value in attributes.items():
            if type(key) is not str or key.startswith("__") or callable(getattr(type(record), key, None)):
                raise NotPlain(f"an attribute that is none: {str(key)[:40]}")
            object.__setattr__(record, key, value)

    def handle(self, value: Any) -> Tree:
        if isinstance(value, StandIn):
            return {"h": number_of(value)}
        if not callable(value) or isinstance(value, type):
            raise NotPlain(f"{type(value).__name__} cannot be given to a program")
        number = next((number for number, lent in self._lent.items() if lent is value), None)
        if number is None:
            self._count += 1
            number = self._count  # never given twice: what a program kept of an earlier test calls nothing
            self._lent[number] = value
        return {"k": number}

    def resolve(self, body: Any) -> Any:
        number, name, special = body
        if type(number) is not int or type(name) is not str or type(special) is not list or len(special) > len(SPECIAL):
            raise NotPlain("broken message: no handle")
        if (known := self._stand_ins.get(number)) is not None:
            return known
        if len(self._stand_ins) >= MOST:
            raise NotPlain(f"more than {MOST} objects of the program")
        made = _class_of(name[:40], frozenset(_METHODS.keys() & set(special)))(self, number)
        self._stand_ins[number] = made
        self._dead.discard(number)  # the program still had it
        weakref.finalize(made, self._dead.add, number).atexit = False
        return made

    def named(self, name: str) -> Any:
        return TYPES[name]

    def _exception(self, body: Any) -> type:
        """A class of exceptions that the program has: the tests may catch what it raises by that name."""
        name, base_name = map(str, body)
        base = getattr(builtins, base_name, None)
        if not (isinstance(base, type) and issubclass(base, Exception)):
            raise NotPlain("broken message: no exception")
        return self._exceptions.setdefault(name[:40], type(name[:40], (base,), {"__module__": "program"}))

    def _reply(self) -> tuple[bytes, bytes]:
        """What the program answers; what it asks of the tests' functions before that is answered here."""
        while True:
            kind, body = self.receive()
            if kind != b"K":
                return kind, body
            self._send(self._called_back(body))

    def _called_back(self, body: bytes) -> str:
        self._depth += 1
        try:
            number, args, kwargs = self.decode(body)
            self.shared |= self._told  # what it gives may be the answer of an object that the tests told something
            if self._depth > DEEPEST:
                raise RecursionError("functions of the test inside each other")
            return self.encode(["returned", self._lent[number](*args, **kwargs)])
        except ProgramGone:
            raise
        except BaseException as error:
            if isinstance(error, AssertionError):
                self.failed = error
            return dump(["raised", type(error).__name__, str(error)[:300]])
        finally:
            self._depth -= 1

    def _answer(self, kind: bytes, body: bytes) -> Any:
        if kind == b"R":
            return self.decode(body)
        self.raised = self._raised(kind, body)
        raise self.raised

    def _raised(self, kind: bytes, body: bytes) -> BaseException:
        if kind == b"N":
            return NoResult(f"the result is not plain data: {body[:200].decode('utf-8', 'replace')}")
        told = parse(body) if kind == b"X" else None
        if type(told) is not list or len(told) != 3 or type(told[0]) is not str or type(told[1]) is not str:
            return ProgramGone()
        known = self._records.get(told[0]) or self._exceptions.get(told[0])
        found = MemoryError if told[2] else known or getattr(builtins, told[0], None)
        if isinstance(found, type) and issubclass(found, Exception):
            made = found.__new__(found)
            made.args = (told[1],)
            return made
        return ProgramRaised(f"{told[0]}: {told[1]}")

    def _send(self, request: str) -> None:
        try:
            self._connection.sendall(frame(request.encode()))
        except OSError:
            self.gone = True
            raise ProgramGone from None

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            if not (more := self._connection.recv(min(size - len(data), 1 << 20))):
                raise ProgramGone
            data += more
        return bytes(data)


class TooEarly(Exception):
    """A test's text uses the program before there is one: it is run again when there is."""


class Later:
    """Stands for a name of the program before there is one: whatever is done with it is too early."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def _too_early(self, *args: Any, **kwargs: Any) -> Any:
        raise TooEarly(self.__name__)

    __call__ = __getattr__ = __iter__ = __getitem__ = __bool__ = __len__ = __eq__ = __mro_entries__ = _too_early  # type: ignore[assignment]
    __hash__ = object.__hash__


class Candidate:
    """Stands for the function under test: arguments go to the program, the result comes back."""

    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._program.loaded:
            raise TooEarly
        try:
            return self._program.call(args, kwargs)
        except (StopIteration, StopAsyncIteration) as error:  # map(candidate, ...) would take it for its own end and skip the rest
            self._program.raised = ProgramRaised(f"{type(error).__name__}: {error}")
            raise self._program.raised from None


class StandIn:
    """Stands for an object of the program. A subclass for each set of special methods, so that Python finds those that the object has."""

    __slots__ = ("__number", "__program", "__weakref__")

    def __init__(self, program: Program, number: int) -> None:
        object.__setattr__(self, "_StandIn__program", program)
        object.__setattr__(self, "_StandIn__number", number)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__name__", "__doc__", "__qualname__"):  # nothing of the judge's own machinery asks a program
            raise AttributeError(name)
        program = program_of(self)
        return program.read(program.ask("attribute", self, name))

    def __setattr__(self, name: str, value: Any) -> None:
        program_of(self).told(program_of(self).ask("set", self, name, value))

    def __delattr__(self, name: str) -> None:
        program_of(self).told(program_of(self).ask("delete", self, name))

    def __bool__(self) -> bool:
        return program_of(self).judged_by_itself(program_of(self).ask("bool", self)) is True

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, StandIn):
            return NotImplemented
        return program_of(self).judged_by_itself(self is other or program_of(self).ask("eq", self, other)) is True

    def __hash__(self) -> int:
        return hash(number_of(self))

    def __str__(self) -> str:
        return _text(program_of(self).read(program_of(self).ask("str", self)))

    def __repr__(self) -> str:
        return _text(program_of(self).read(program_of(self).ask("repr", self)))

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, StandIn) and program_of(self).judged_by_itself(program_of(self).ask("isinstance", value, self)) is True

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError("an object of the program cannot be copied")


def program_of(of: StandIn) -> Program:
    return object.__getattribute__(of, "_StandIn__program")  # type: ignore[no-any-return]


def number_of(of: StandIn) -> int:
    return object.__getattribute__(of, "_StandIn__number")  # type: ignore[no-any-return]


def _text(answer: Any) -> str:
    if type(answer) is not str:
        raise TypeError("the program's text is none")
    return answer


def _reads(what: str) -> Callable[..., Any]:
    return lambda self: program_of(self).read(program_of(self).ask(what, self))


def _between(what: str) -> Callable[..., Any]:
    """An operator that is asked between two objects of the program, and not where the other operand is the tests' own."""

    def ask(self: StandIn, other: object) -> Any:
        if not isinstance(other, StandIn):
            return NotImplemented
        return program_of(self).judged_by_itself(program_of(self).ask(what, self, other))

    return ask


def _call(self: StandIn, *args: Any, **kwargs: Any) -> Any:
    program = program_of(self)
    answer = program.ask("call", self, *args, **kwargs)
    return program.told(answer) if args or kwargs else program.read(answer)


def _item(self: StandIn, key: Any) -> Any:
    program = program_of(self)
    if isinstance(key, slice):
        raise TypeError("an object of the program cannot be sliced by its tests")
    answer = program.ask("item", self, key)
    return program.read(answer) if type(key) is int else program.told(answer)


def _iter(self: StandIn) -> Iterator[Any]:
    answer = program_of(self).ask("iter", self)
    if isinstance(answer, StandIn) and hasattr(type(answer), "__next__"):
        return answer  # type: ignore[return-value]
    raise TypeError("the program's iterator is none")


_METHODS: dict[str, Callable[..., Any]] = {
    "__iter__": _iter,
    "__call__": _call,
    "__getitem__": _item,
    "__setitem__": lambda self, key, value: program_of(self).told(program_of(self).ask("set_item", self, key, value)),
    "__delitem__": lambda self, key: program_of(self).told(program_of(self).ask("delete_item", self, key)),
    "__len__": lambda self: program_of(self).judged_by_itself(program_of(self).ask("len", self)),
    "__round__": lambda self, *digits: program_of(self).read(program_of(self).ask("round", self, *digits)),
    "__exit__": lambda self, *_: bool(program_of(self).ask("exit", self)) and False,
    **{f"__{what}__": _reads(what) for what in ("next", "int", "float", "abs", "neg", "enter")},
    **{f"__{what}__": _between(what) for what in ("lt", "le", "gt", "ge", "add", "sub", "mul")},
}
_classes: dict[tuple[str, frozenset[str]], type[StandIn]] = {}


def _class_of(name: str, special: frozenset[str]) -> type[StandIn]:
    if (name, special) not in _classes:
        if len(_classes) > 1000:
            _classes.clear()
        body = {key: _METHODS[key] for key in special}
        _classes[name, special] = type(name, (StandIn,), {"__slots__": (), "__module__": "sandbox.proxies", **body})
    return _classes[name, special]
