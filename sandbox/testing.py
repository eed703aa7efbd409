"""What runs in the judge process of an `assert` job: `check(candidate)`, where candidate asks the program's process for each call.

Another process and another uid than the program's, with rlimits of its own, because what the program answers may be an attack on it.
Descriptors: 0 to 2 nowhere, 3 the request (a header), 4 the channel to the owner, 5 the socket to the program.
Messages to the owner, by first byte: S set up, B the tests are broken (our failure, decided before the program is heard), C not a program,
U the program was never set up (our failure), X it raised while being loaded, G it is gone, L loaded, V a verdict: [test, verdict, detail].
"""

from __future__ import annotations

import builtins
import json
import os
import socket
import struct
from typing import Any, NoReturn

from sandbox.program import read_request, send
from sandbox.wire import MAX_FRAME, decode, dump, encode, frame, parse

PROGRAM = 5


class ProgramGone(BaseException):
    """The program's process no longer answers. A BaseException: tests that catch Exception must not take it for an answer."""


class ProgramRaised(Exception):
    """The program raised something that is no builtin exception."""


class Candidate:
    """Stands for the function under test: arguments go to the program as plain data, the result comes back the same way."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self._connection = connection
        self.__name__ = name
        self.raised: BaseException | None = None
        self.gone = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        request = encode([list(args), kwargs]).encode()
        try:
            self._connection.sendall(frame(request))
        except OSError:
            self.gone = True
            raise ProgramGone from None
        kind, body = self.receive()
        if kind == b"R":
            return decode(body)
        self.raised = _raised(kind, body)
        raise self.raised

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

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            if not (more := self._connection.recv(min(size - len(data), 1 << 20))):
                raise ProgramGone
            data += more
        return bytes(data)


def _raised(kind: bytes, body: bytes) -> BaseException:
    if kind == b"N":
        return ProgramRaised(f"the result is not plain data: {body[:200].decode('utf-8', 'replace')}")
    told = parse(body) if kind == b"X" else None
    if type(told) is not list or len(told) != 3 or type(told[0]) is not str or type(told[1]) is not str:
        return ProgramGone()
    found = MemoryError if told[2] else getattr(builtins, told[0], None)
    if isinstance(found, type) and issubclass(found, Exception):
        made = found.__new__(found)
        made.args = (told[1],)
        return made
    return ProgramRaised(f"{told[0]}: {told[1]}")


def judge() -> NoReturn:
    """Never returns."""
    send(b"S")
    header = json.loads(read_request()[0])
    candidate = Candidate(socket.socket(fileno=PROGRAM), header["entry"] or "candidate")
    checks = [_check(source, header["prompt"], candidate, at) for at, source in enumerate(header["tests"])]
    try:
        _await_program(candidate)
        for at, check in enumerate(checks):
            verdict, detail = _decide(check, candidate)
            if candidate.gone:
                raise ProgramGone
            send(b"V", dump([at, verdict, detail[:300]]))
    except ProgramGone:
        send(b"G")
    os._exit(0)


def _check(source: str, prompt: str, candidate: Candidate, at: int) -> Any:
    """The test's function, made before the program has said a word. Helpers come from the prompt, never from the program."""
    space: dict[str, Any] = {"__name__": "tests"}
    try:
        exec(compile(prompt, "prompt", "exec", dont_inherit=True), space)
    except Exception:
        space = {"__name__": "tests"}  # most prompts are prose
    try:
        space[candidate.__name__] = candidate
        exec(compile(source, f"test {at}", "exec", dont_inherit=True), space)
        return space["check"]
    except BaseException as error:
        send(b"B", f"test {at} cannot be used: {type(error).__name__}: {error}"[:300])
        os._exit(0)


def _await_program(candidate: Candidate) -> None:
    try:
        candidate.receive()  # S
    except ProgramGone:
        send(b"U")  # it was never set up: our failure
        os._exit(0)
    kind, body = candidate.receive()
    if kind == b"L":
        send(b"L")
        return
    send(kind if kind in (b"C", b"X") else b"G", body[:1000].decode("utf-8", "replace"))
    os._exit(0)


def _decide(check: Any, candidate: Candidate) -> tuple[str, str]:
    try:
        check(candidate)
    except ProgramGone:
        return "RE", ""
    except BaseException as error:
        if error is candidate.raised:
            verdict = "MLE" if isinstance(error, MemoryError) else "WA" if isinstance(error, ProgramRaised) and "plain" in str(error) else "RE"
            return verdict, f"raised {type(error).__name__}: {error}"
        return "WA", "an assertion failed" if isinstance(error, AssertionError) else f"the test raised {type(error).__name__}"
    return "AC", ""
