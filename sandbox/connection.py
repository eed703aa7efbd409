"""The judge's end of the connection to a program's process: calls of the function under test, and questions about objects that stay there.

A function or an iterator of the tests that the program is given stays here too. The program gets one that asks, and its questions are answered while
its own answer is awaited. So it runs where its test runs, and an assertion that fails in it decides the test, whatever the program makes of the
exception.
"""

from __future__ import annotations

import io
import socket
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sandbox.awaited import elements_of, result_of
from sandbox.changed_parts import Walk, walked
from sandbox.objects import SPECIAL
from sandbox.proxies import Candidate, Memory, StandIn, TooEarly, memory_of, stand_in_class
from sandbox.raised import Exceptions, ProgramRaised
from sandbox.records import RecordCodec
from sandbox.wire import MAX_FRAME, NotPlain, Tree, dump, frame, parse

MOST = 100_000
HANDLE = '{"h":'  # as an encoded message has it: a text of the message has its quotes escaped
NAMED = -1  # the age of what the program has by a name that the tests use: each answer of it is the program's word
DEEPEST = 50  # calls of the tests' functions inside each other


class ProgramGone(BaseException):
    """The program's process no longer answers. A BaseException: tests that catch Exception must not take it for an answer."""


class NoResult(ProgramRaised):
    """The program's answer cannot cross."""


class Program(RecordCodec):
    """The connection to the program's process. Of one test at a time: `begin` before each."""

    def __init__(self, connection: socket.socket, name: str, most_printed: int = 1 << 20) -> None:
        """most_printed: bytes that its calls may print where the tests capture it, all tests together."""
        super().__init__()
        self._connection = connection
        self.most_printed, self.printed_bytes = most_printed, 0
        self.candidate = Candidate(self, name)
        self.raised: BaseException | None = None
        self.gone = False
        self.loaded = False
        self.shared = False  # the program's own word went into the verdict
        self.told = False  # an object learned something from the tests: what was known of objects holds no longer
        self.refused = ""  # why something of this test cannot cross: no test passes that it happens to, whatever the test makes of the exception
        self.visible = True  # the test sees what a call changed in its arguments even where the call returned something
        self.concealed = False  # there was such a change, and it did not see it
        self._turn = threading.RLock()  # threads of the tests may call the program
        self._captured = False  # as the program knows it
        self._known: set[str] = set()  # records that the program may make
        self._stdout = sys.stdout
        self._calls = 0  # of the function under test
        self._messages = 0  # of the program
        self._of: Any = None  # the object that was asked what is answered now
        self._question: tuple[Any, ...] | None = (
            None  # the one kind that was answered since the last call
        )
        self._records: dict[str, type] = {}
        self._announced: set[str] = set()
        self._exceptions = Exceptions(self.own_class, self.fill)
        self._stand_ins: weakref.WeakValueDictionary[int, StandIn] = weakref.WeakValueDictionary()
        self._dead: set[int] = set()
        self._space_name = ""
        self._lent: dict[
            int, Callable[..., Any]
        ] = {}  # functions of this test that the program may call, by the numbers it knows them by
        self._lent_for: dict[int, int] = {}  # the last call that each of them was an argument of
        self._iterators: dict[
            int, Iterator[Any]
        ] = {}  # those of them that are the next of an iterator
        self._count = self._depth = 0
        self.failed: AssertionError | None = None  # raised by one of them
        self._builder.makers |= {
            "e": self._exceptions.kind, "x": self._exceptions.made, "k": lambda number: self._lent[number],
            "j": lambda number: self._iterators[number],
            "co": lambda number: result_of(self, number, self._calls), "cg": lambda number: elements_of(self, number, self._calls),
        }  # fmt: skip

    def begin(self, space: dict[str, Any], prompted: Iterable[str] = (), *, visible: bool) -> None:
        """Starts a test. visible: it sees what a call changed in its arguments even where the call returned something.

        prompted: the names of the space that the prompt defines. Of its other classes a program can only know those whose objects it is given.
        """
        self.shared = self.told = self.concealed = False
        self.visible, self.refused, self.failed = visible, "", None
        self._known = set(prompted)
        for known in (self._lent, self._lent_for, self._iterators, self._stand_ins):
            known.clear()
        self.know(space)

    def know(self, space: dict[str, Any]) -> None:
        """Classes of this name space, the test's, are records."""
        self._records = {
            name: value
            for name, value in space.items()
            if isinstance(value, type) and value.__module__ == space["__name__"]
        }
        self._space_name = space["__name__"]
        self._announce()

    def _announce(self) -> None:
        if (known := self._known & self._records.keys()) - self._announced:
            self._announced |= known
            self._send(self.encode(["records", sorted(self._announced)]))

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function under test; what it changed in its arguments is changed here."""
        with self._turn:
            self._calls += 1
            call = [list(args), kwargs]
            given, _ = walk = walked(call, self.record_name)
            request = self.encode([*call, len(given)], walk=walk)
            self._announce()
            self._capture()
            self.told |= (
                HANDLE in request
            )  # an object of the program that comes back to it may be changed there
            self._question = self._of = None
            self._send(request)
            kind, body = self._reply(prints=True)
            self._question = self._of = None
            answer = (
                self._changed(parse(body), given)
                if kind == b"M"
                else self._answer(kind, body, given)
            )
            if isinstance(answer, StandIn):
                memory_of(answer).age = self._calls
            return answer

    def _capture(self) -> None:
        """Tells the program whether this test reads what a call prints."""
        if self._captured != (sys.stdout is not self._stdout):
            self._captured = not self._captured
            self._send(self.encode(["captured", self._captured]))

    def _changed(self, body: Tree, given: list[Any]) -> Any:
        """The result of a call that changed its arguments. Where the test is not to see the changes, they are made in copies of these."""
        root = body["g"][0] if type(body) is dict and type(body.get("g")) is list else body
        if not self.visible and not (type(root) is list and root[:1] == [None]):
            self.concealed = True
            given = [self.blank(part) for part in given]
        return self.update(given, body)

    def ask(self, what: str, *args: Any, **kwargs: Any) -> Any:
        """An operation on an object of the program, which is the first argument, or a name of its module."""
        if not self.loaded:
            raise TooEarly
        with self._turn:
            if len(self._dead) >= 1000:
                self._send(self.encode(["drop", sorted(self._dead.difference(self._stand_ins))]))
                self._dead.clear()
            self._send(self.encode([what, list(args), kwargs]))
            self._of = args[0]
            return self._answer(*self._reply(), ends=what in ("next", "await"))

    def ask_weighed(self, age: int, question: tuple[Any, ...], what: str, *args: Any) -> Any:
        """The same, for an answer to this question that goes into the verdict, be it an exception."""
        answer: Any = None
        try:
            answer = self.ask(what, *args)
        finally:
            self.weigh(age, question, answer)
        return answer

    def look(self, of: StandIn, what: str, *args: Any) -> Any:
        """An operation that changes nothing: asked once, and asked again only when objects have been told something since."""
        answers, question = memory_of(of).answers, (what, *args)
        if not self.told and question in answers:
            return answers[question]
        answer = self.ask_weighed(
            memory_of(of).age, (memory_of(of).number, *question), what, of, *args
        )
        answers[question] = answer
        return answer

    def weigh(self, age: int, question: tuple[Any, ...], answer: Any) -> None:
        """Marks the verdict `shared` where the program could fit this answer to what the tests did since it returned the object, of this age.

        The first answer after a call of the function under test about an object that this call returned could as well have crossed with it, and so
        could the elements of one iteration. Whatever is asked later tells the program how the test goes on.
        """
        if self._is_new(answer) and not memory_of(answer).state:
            return
        self.shared |= isinstance(answer, type)  # which is then called, as a method would be
        if self.told or age != self._calls or self._question not in (None, question):
            self.shared = True
        self._question = question

    def _is_new(self, answer: Any) -> bool:
        """Whether it is an object that came with the last message for the first time."""
        return isinstance(answer, StandIn) and memory_of(answer).came_in == self._messages

    def tell(self, what: str, *args: Any, **kwargs: Any) -> Any:
        """An operation by which an object learns something from the tests: its answers are its word from now on."""
        self.told = True
        try:
            answer = self.ask(what, *args, **kwargs)
        except BaseException:
            self.shared = True
            raise
        self.shared |= answer is not None and not self._is_new(answer)
        return answer

    def own_word(self, what: str, *args: Any) -> Any:
        """A question between two objects of the program, which it answers as it likes."""
        self.shared = True
        return self.ask(what, *args)

    def global_name(self, name: str) -> Any:
        """What the program calls by a name that the tests use and do not define. Raises NameError."""
        answer = self.ask("name", name)
        if isinstance(answer, StandIn):
            memory_of(answer).age = NAMED
        elif not (isinstance(answer, type) and issubclass(answer, BaseException)):
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

    def _encode(
        self, value: Any, given: Sequence[Any], walk: Walk | None, *, changed: bool = False
    ) -> str:
        try:
            return super()._encode(value, given, walk, changed=changed)
        except NotPlain as error:
            self.refused = str(error)
            raise

    def _decode(self, of: Tree, given: Sequence[Any]) -> Any:
        self._messages += 1
        try:
            return super()._decode(of, given)
        except NotPlain as error:
            self.refused = str(error)
            raise

    def handle(self, value: Any) -> Tree:
        if isinstance(value, StandIn):
            return {"h": memory_of(value).number}
        if isinstance(value, (io.TextIOWrapper, io.BufferedReader)) and value.readable():
            buffer: Any = io.StringIO if isinstance(value, io.TextIOWrapper) else io.BytesIO
            return self._foreign(buffer(value.read()))
        if isinstance(value, Iterator):
            return {"j": self._lend(value.__next__, value)}
        if isinstance(value, type) and self._records.get(value.__name__) is value:
            return {"l": value.__name__}
        if not callable(value) or isinstance(value, type):
            raise NotPlain(f"{type(value).__name__} cannot be given to a program")
        return {"k": self._lend(value, None)}

    def _lend(self, function: Callable[..., Any], iterator: Iterator[Any] | None) -> int:
        """The number by which the program knows this function, or this iterator."""
        known = self._lent if iterator is None else self._iterators
        lent = function if iterator is None else iterator
        number = next((number for number, other in known.items() if other is lent), None)
        if number is None:
            self._count += 1
            number = (
                self._count
            )  # never given twice: what a program kept of an earlier test calls nothing
            self._lent[number] = function
            if iterator is not None:
                self._iterators[number] = iterator
        self._lent_for[number] = self._calls
        return number

    def resolve(self, body: Any) -> Any:
        number, name, special = body
        if (
            type(number) is not int
            or type(name) is not str
            or type(special) is not list
            or len(special) > len(SPECIAL)
        ):
            raise NotPlain("broken message: no handle")
        if (known := self._stand_ins.get(number)) is not None:
            return known
        if len(self._stand_ins) >= MOST:
            raise NotPlain(f"more than {MOST} objects of the program")
        age = memory_of(self._of).age if isinstance(self._of, StandIn) else self._calls
        made = stand_in_class(name[:40], frozenset(special))(
            self, Memory(number, age, self._messages)
        )
        self._stand_ins[number] = made
        self._dead.discard(number)  # the program still had it
        weakref.finalize(made, self._dead.add, number).atexit = False
        return made

    def numpy(self) -> Any:
        return sys.modules.get("numpy")  # the tests that use it have imported it

    def attach(self, states: Any) -> None:
        for number, attributes in states:
            if (of := self._stand_ins.get(number)) is None:
                continue
            memory, sent = memory_of(of), dump(attributes)
            if (
                memory.came_in != self._messages and sent != memory.sent
            ):  # it changed although nobody told it anything
                self.shared = True
            memory.sent = sent
            state = {key: self._builder.build(part) for key, part in attributes if type(key) is str}
            memory.state = {
                key: value for key, value in state.items() if not isinstance(value, type)
            }  # what is called is asked for

    def _reply(self, *, prints: bool = False) -> tuple[bytes, bytes]:
        """What the program answers; what it asks of the tests' functions before that is answered here. prints: so is what a call printed."""
        while True:
            kind, body = self.receive()
            if kind == b"K":
                self._send(self._called_back(body))
            elif kind == b"P" and prints and self._captured:
                self.printed_bytes += len(body)
                if self.printed_bytes > self.most_printed:
                    raise ProgramRaised("it printed too much")
                sys.stdout.write(body.decode("utf-8", "replace"))
            else:
                return kind, body

    def _called_back(self, body: bytes) -> str:
        self._depth += 1
        try:
            self._of = None
            number, args, kwargs = self.decode(body)
            self.shared |= (
                self.told
            )  # what it gives may be the answer of an object that the tests told something
            self.shared |= (
                self._lent_for[number] != self._calls and number not in self._iterators
            )  # it may have learned there how the test goes on
            if self._depth > DEEPEST:
                raise RecursionError("functions of the test inside each other")
            answer = self.encode(["returned", self._lent[number](*args, **kwargs)])
            self.told |= HANDLE in answer
            return answer
        except ProgramGone:
            raise
        except BaseException as error:
            if isinstance(error, AssertionError):
                self.failed = error
            return dump(["raised", type(error).__name__, str(error)[:300]])
        finally:
            self._depth -= 1

    def _answer(
        self, kind: bytes, body: bytes, given: Sequence[Any] = (), *, ends: bool = False
    ) -> Any:
        """ends: to say that there is no more is an answer. Otherwise map(candidate, ...) would take it for its own end and skip the rest."""
        if kind == b"R":
            return self.decode(body, given)
        self.raised = self._raised(kind, body)
        if isinstance(self.raised, (StopIteration, StopAsyncIteration)) and not ends:
            self.raised = ProgramRaised(f"{type(self.raised).__name__}: {self.raised}")
        raise self.raised

    def _raised(self, kind: bytes, body: bytes) -> BaseException:
        if kind == b"N":
            self.refused = f"the result is not plain data: {body[:200].decode('utf-8', 'replace')}"
            return NoResult(self.refused)
        told = parse(body) if kind == b"X" else None
        return ProgramGone() if told is None else self._exceptions.made(told)

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
