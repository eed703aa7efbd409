"""The judge's end of the connection to a program's process: calls of the function under test, and
requests about objects that stay in the program.

A function or an iterator of the tests that is passed to the program stays in the judge. The program
gets a stand-in whose calls are sent here and answered while the program's own answer is awaited.
The function therefore runs where its test runs, and an assertion that fails in it decides the test,
whatever the program does with the exception.
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

from sandbox.child.awaited import elements_of, result_of
from sandbox.child.changed_parts import Walk, walked
from sandbox.child.objects import SPECIAL
from sandbox.child.proxies import FunctionStub, Memory, StandIn, TooEarly, memory_of, stand_in_class
from sandbox.child.raised import Exceptions, NoResult, ProgramGone, ProgramRaised
from sandbox.child.records import RecordCodec
from sandbox.wire import MAX_FRAME, NotPlain, Tree, dump, frame, parse

MAX_OBJECTS = 100_000
HANDLE = '{"h":'  # as it appears in an encoded message; quotes inside strings are escaped there
NAMED = -1  # of an object that tests got by name: all its answers are the program's own word
DEEPEST = 50  # maximum nesting of calls to the tests' functions


class Program(RecordCodec):
    """The connection to the program's process, for one test at a time: call `begin` before each."""

    def __init__(self, connection: socket.socket, name: str, most_printed: int = 1 << 20) -> None:
        """most_printed: bytes that calls may print where tests capture output, over all tests."""
        super().__init__()
        self._connection = connection
        self.most_printed, self.printed_bytes = most_printed, 0
        self.candidate = FunctionStub(self, name)
        self.raised: BaseException | None = None
        self.gone = False
        self.loaded = False
        self.shared = False  # the verdict depends on what the program itself said
        self.got_data = False  # an object received data from the tests: caches are invalid
        self.refused = ""  # why a value cannot be sent; the test then fails in any case
        self.visible = True  # the test sees changed arguments
        self.none_shows = True  # it does where None is returned
        self.concealed = False  # such a change happened and was hidden from the test
        self._lock = threading.RLock()  # several threads of the tests may call the program
        self._captured = False  # the state that the program was last sent
        self._known: set[str] = set()  # names of records that the program may construct
        self._stdout = sys.stdout
        self._calls = 0  # number of calls of the function under test
        self._messages = 0  # number of messages from the program
        self._of: Any = None  # the object that the current request is about
        self._question: tuple[Any, ...] | None = None  # last kind of request
        self._records: dict[str, type] = {}
        self._announced: set[str] = set()
        self._exceptions = Exceptions(self.own_class, self.fill)
        self._stand_ins: weakref.WeakValueDictionary[int, StandIn] = weakref.WeakValueDictionary()
        self._dead: set[int] = set()
        self._space_name = ""
        # functions of this test that the program may call, by number
        self._lent: dict[int, Callable[..., Any]] = {}
        self._lent_for: dict[int, int] = {}  # the last call that each of them was passed to
        self._iterators: dict[int, Iterator[Any]] = {}  # the iterators among them
        self._count = self._depth = 0
        self.failed: AssertionError | None = None  # raised by one of these functions
        self._builder.makers |= {
            "e": self._exceptions.kind,
            "x": self._exceptions.build,
            "k": lambda number: self._lent[number],
            "j": lambda number: self._iterators[number],
            "co": lambda number: result_of(self, number, self._calls),
            "cg": lambda number: elements_of(self, number, self._calls),
        }

    def begin(
        self,
        space: dict[str, Any],
        prompted: Iterable[str] = (),
        *,
        visible: bool,
        none_shows: bool = True,
    ) -> None:
        """Start a test.

        visible: the test sees changes to a call's arguments. none_shows: it does in any case where
            the call returned None.
        prompted: the names in the test's namespace that the prompt defines. The program can know
            the test's other classes only through objects that are passed to it.
        """
        self.shared = self.got_data = self.concealed = False
        self.visible, self.none_shows, self.refused, self.failed = visible, none_shows, "", None
        self._known = set(prompted)
        for known in (self._lent, self._lent_for, self._iterators, self._stand_ins):
            known.clear()
        self.know(space)

    def know(self, space: dict[str, Any]) -> None:
        """Treat the classes of this namespace, the test's, as records."""
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
        """Call the function under test and apply its changes to the arguments here."""
        with self._lock:
            self._calls += 1
            call = [list(args), kwargs]
            shared_parts, _ = walk = walked(call, self.record_name)
            request = self.encode([*call, len(shared_parts)], walk=walk)
            self._announce()
            self._capture()
            self.got_data |= HANDLE in request  # the program may change an object of its own
            self._question = self._of = None
            self._send(request)
            kind, body = self._reply(prints=True)
            self._question = self._of = None
            answer = (
                self._changed(parse(body), shared_parts)
                if kind == b"M"
                else self._answer(kind, body, shared_parts)
            )
            if isinstance(answer, StandIn):
                memory_of(answer).age = self._calls
            return answer

    def _capture(self) -> None:
        """Tell the program whether this test reads what a call prints."""
        if self._captured != (sys.stdout is not self._stdout):
            self._captured = not self._captured
            self._send(self.encode(["captured", self._captured]))

    def _changed(self, body: Tree, shared_parts: list[Any]) -> Any:
        """Return the result of a call that changed its arguments (or copies, if hidden)."""
        root = body["g"][0] if type(body) is dict and type(body.get("g")) is list else body
        shows = self.none_shows and type(root) is list and root[:1] == [None]
        if not self.visible and not shows:
            self.concealed = True
            shared_parts = [self.blank(part) for part in shared_parts]
        return self.update(shared_parts, body)

    def request(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        """Request an operation on the program's object args[0], or on a name of its module."""
        if not self.loaded:
            raise TooEarly
        with self._lock:
            if len(self._dead) >= 1000:
                self._send(self.encode(["drop", sorted(self._dead.difference(self._stand_ins))]))
                self._dead.clear()
            self._send(self.encode([operation, list(args), kwargs]))
            self._of = args[0]
            return self._answer(*self._reply(), ends=operation in ("next", "await"))

    def request_weighed(
        self, age: int, question: tuple[Any, ...], operation: str, *args: Any
    ) -> Any:
        """Like `request`, for an answer that affects the verdict; `question` identifies it."""
        answer: Any = None
        try:
            answer = self.request(operation, *args)
        finally:
            self.weigh(age, question, answer)
        return answer

    def read_cached(self, of: StandIn, operation: str, *args: Any) -> Any:
        """Request an operation that changes nothing; cached until an object gets test data."""
        answers, question = memory_of(of).answers, (operation, *args)
        if not self.got_data and question in answers:
            return answers[question]
        answer = self.request_weighed(
            memory_of(of).age, (memory_of(of).number, *question), operation, of, *args
        )
        answers[question] = answer
        return answer

    def weigh(self, age: int, question: tuple[Any, ...], answer: Any) -> None:
        """Set `shared` if the program could fit this answer to what the tests did since it returned
        the object of this age.

        The first answer after a call of the function under test, about an object that this call
        returned, could as well have been sent with the object. So could the elements of one
        iteration. Any later request tells the program how the test continues.
        """
        if self._is_new(answer) and not memory_of(answer).state:
            return
        self.shared |= isinstance(answer, type)  # a class: it will be called, as a method would be
        if self.got_data or age != self._calls or self._question not in (None, question):
            self.shared = True
        self._question = question

    def _is_new(self, answer: Any) -> bool:
        """Whether this is an object that arrived for the first time with the last message."""
        return isinstance(answer, StandIn) and memory_of(answer).came_in == self._messages

    def modify(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        """Request an operation that gives an object data: its answers are then untrusted."""
        self.got_data = True
        try:
            answer = self.request(operation, *args, **kwargs)
        except BaseException:
            self.shared = True
            raise
        self.shared |= answer is not None and not self._is_new(answer)
        return answer

    def request_untrusted(self, operation: str, *args: Any) -> Any:
        """Request an operation between two objects of the program; its answer is untrusted."""
        self.shared = True
        return self.request(operation, *args)

    def global_name(self, name: str) -> Any:
        """Return what the program defines under a name that the tests use. Raises NameError."""
        answer = self.request("name", name)
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
        self, value: Any, shared_parts: Sequence[Any], walk: Walk | None, *, changed: bool = False
    ) -> str:
        try:
            return super()._encode(value, shared_parts, walk, changed=changed)
        except NotPlain as error:
            self.refused = str(error)
            raise

    def _decode(self, of: Tree, shared_parts: Sequence[Any]) -> Any:
        self._messages += 1
        try:
            return super()._decode(of, shared_parts)
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
        """Return the number by which the program knows this function or iterator."""
        known = self._lent if iterator is None else self._iterators
        lent = function if iterator is None else iterator
        number = next((number for number, other in known.items() if other is lent), None)
        if number is None:
            self._count += 1
            number = self._count  # never reused: a number from an earlier test calls nothing
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
        if len(self._stand_ins) >= MAX_OBJECTS:
            raise NotPlain(f"more than {MAX_OBJECTS} objects of the program")
        age = memory_of(self._of).age if isinstance(self._of, StandIn) else self._calls
        stand_in = stand_in_class(name[:40], frozenset(special))(
            self, Memory(number, age, self._messages)
        )
        self._stand_ins[number] = stand_in
        self._dead.discard(number)  # the program still had it
        weakref.finalize(stand_in, self._dead.add, number).atexit = False
        return stand_in

    def numpy(self) -> Any:
        return sys.modules.get("numpy")  # tests that use numpy have imported it

    def attach(self, states: Any) -> None:
        for number, attributes in states:
            if (of := self._stand_ins.get(number)) is None:
                continue
            memory, sent = memory_of(of), dump(attributes)
            # changed although the tests sent it nothing
            if memory.came_in != self._messages and sent != memory.sent:
                self.shared = True
            memory.sent = sent
            state = {key: self._builder.build(part) for key, part in attributes if type(key) is str}
            # classes are requested when they are needed
            memory.state = {
                key: value for key, value in state.items() if not isinstance(value, type)
            }

    def _reply(self, *, prints: bool = False) -> tuple[bytes, bytes]:
        """Return the program's answer; until then, serve calls of test functions and prints."""
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
            self.shared |= self.got_data  # arguments may come from an object that got test data
            # A function passed to an earlier call may tell the program how the test continues.
            self.shared |= self._lent_for[number] != self._calls and number not in self._iterators
            if self._depth > DEEPEST:
                raise RecursionError("functions of the test inside each other")
            answer = self.encode(["returned", self._lent[number](*args, **kwargs)])
            self.got_data |= HANDLE in answer
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
        self, kind: bytes, body: bytes, shared_parts: Sequence[Any] = (), *, ends: bool = False
    ) -> Any:
        """Return or raise the answer. ends: StopIteration is an answer here. Otherwise
        map(candidate, ...) would take it for its own end and skip the rest.
        """
        if kind == b"R":
            return self.decode(body, shared_parts)
        self.raised = self._raised(kind, body)
        if isinstance(self.raised, (StopIteration, StopAsyncIteration)) and not ends:
            self.raised = ProgramRaised(f"{type(self.raised).__name__}: {self.raised}")
        raise self.raised

    def _raised(self, kind: bytes, body: bytes) -> BaseException:
        if kind == b"N":
            self.refused = f"the result is not plain data: {body[:200].decode('utf-8', 'replace')}"
            return NoResult(self.refused)
        tree = parse(body) if kind == b"X" else None
        return ProgramGone() if tree is None else self._exceptions.build(tree)

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
