"""Runs in a judge process: executes the problem's own source, which is trusted no more than a
program, apart from program and owner.

With `assert`: `check(candidate)`, where candidate calls the program's process. With a checker:
`check(args, got, expected)` on the answers.

The judge has another process and another uid than the program, and rlimits of its own, because the
program's answers may be an attack on it.
Descriptors: 0 to 2 /dev/null, 3 the request (a header), 4 the channel to the owner, 5 the socket to
the program.

Messages to the owner, by first byte:
- S set up, L loaded
- B the tests are broken (INFRA: the problem's fault, decided before the program is heard)
- C not a program, X the program raised while it was loaded, G the program is gone
- U the program was never set up (INFRA: the sandbox's fault)
- V a verdict: [test, verdict, detail, whether it depends on what the program itself said]
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import importlib
import json
import os
import socket
import sys
import types
from typing import Any, NoReturn

from sandbox.child.connection import Program
from sandbox.child.program import read_request, send
from sandbox.child.proxies import Later, TooEarly
from sandbox.child.raised import ProgramGone
from sandbox.wire import NotPlain, decode, dump

PROGRAM = 5
MODULES = {*sys.stdlib_module_names, "numpy"}
ALIASES = {"np": "numpy"}
EXTENDED = dis.opmap["EXTENDED_ARG"]
# by how many bits the argument is shifted
LOADS = {dis.opmap["LOAD_NAME"]: 0, dis.opmap["LOAD_GLOBAL"]: 1}

Space = dict[str, Any]


def run(_: str) -> NoReturn:
    """Entry point of a judge process; never returns."""
    send(b"S")
    first, *frames = read_request()
    header = json.loads(first)
    if header["do"] == "check":
        _check_answers(header["checker"], frames)
    program = Program(
        socket.socket(fileno=PROGRAM), header["entry"] or "candidate", header["output_kb"] * 1024
    )
    tests = [
        _Test(source, header["prompt"], program, at, in_place=in_place, none_shows=none_shows)
        for at, (source, in_place, none_shows) in enumerate(
            zip(header["tests"], header["in_place"], header["none_shows"], strict=True)
        )
    ]
    try:
        _await_program(program)
        for at, test in enumerate(tests):
            verdict, detail = test.decide()
            if program.gone:
                raise ProgramGone
            if program.printed_bytes > program.most_printed:
                verdict, detail = "OLE", f"more than {program.most_printed // 1024} kB of output"
            send(b"V", dump([at, verdict, detail[:300], program.shared]))
    except ProgramGone:
        send(b"G")
    os._exit(0)


def _check_answers(checker: str, frames: list[bytes]) -> NoReturn:
    """Run the checker on each answer. frames: per answer the style, then for `call` the call as
    sent to the program, its answer, the expected value; for `stdio` stdin, output, expected output.
    """
    space: Space = {"__name__": "checker"}
    try:
        exec(compile(checker, "checker", "exec", dont_inherit=True), space)
        check = space["check"]
    except BaseException as error:
        send(b"B", f"the checker cannot be used: {type(error).__name__}: {error}"[:300])
        os._exit(0)
    for at in range(0, len(frames), 4):
        send(b"V", dump([at // 4, *_checked(check, *frames[at : at + 4]), False]))
    os._exit(0)


def _checked(
    check: Any, style: bytes, request: bytes, got: bytes, expected: bytes
) -> tuple[str, str]:
    try:
        if style == b"call":
            args, kwargs = decode(request)
            result = check(args, decode(got), decode(expected), **kwargs)
        else:
            result = check(*(text.decode("utf-8", "replace") for text in (request, got, expected)))
    except NotPlain as error:
        return "RE", str(error)
    except BaseException as error:
        return "WA", f"the checker raised {type(error).__name__}"
    if result is not True and result is not False:
        return "WA", f"the checker said {type(result).__name__}, neither True nor False"
    return ("AC", "") if result else ("WA", "refused by the checker")


class _Test:
    """The source of a test. It runs before the program sends anything, so that its own errors are
    never the program's fault. Helper functions come from the prompt.

    If the source uses the program while it is being defined, it is run again as part of the test.
    """

    def __init__(
        self,
        source: str,
        prompt: str,
        program: Program,
        at: int,
        *,
        in_place: bool,
        none_shows: bool,
    ) -> None:
        self.program = program
        self.in_place, self.none_shows = in_place, none_shows
        self.space = _space_of(prompt)
        self.prompted = set(self.space)
        self.space[program.candidate.__name__] = program.candidate
        try:
            self.code = compile(source, f"test {at}", "exec", dont_inherit=True)
            self.program_names = self._bind()
            self._run()
        except BaseException as error:
            send(b"B", f"test {at} cannot be used: {type(error).__name__}: {error}"[:300])
            os._exit(0)

    def _bind(self) -> list[str]:
        """Import the modules that the source uses without defining them; return its other undefined
        names, which the program must define.
        """
        program_names = []
        for name in sorted(_globals(self.code) - self.space.keys() - vars(builtins).keys()):
            module = ALIASES.get(name, name)
            if module in MODULES:
                with contextlib.suppress(ImportError):
                    self.space[name] = importlib.import_module(module)
            else:
                program_names.append(name)
        return program_names

    def _run(self) -> None:
        """Define what the source defines; postpone it if it needs the program."""
        for name in self.program_names:
            self.space[name] = Later(name)
        try:
            exec(self.code, self.space)
            self.postponed = False
        except TooEarly:
            self.postponed = True
        self.program_names = [
            name for name in self.program_names if isinstance(self.space.get(name), Later)
        ]
        if not self.postponed:
            self.check = self.space["check"]

    def decide(self) -> tuple[str, str]:
        """Decide the test. A test that does not ask for arguments changed in place must hold twice.
        First it runs without seeing such changes, because otherwise a program could alter what the
        test expects. Then it runs with them, as in Python, because otherwise no test could notice
        that an argument was changed that should not be.
        """
        decided = self._decide(visible=self.in_place)
        if decided[0] != "AC" or not self.program.concealed:
            return decided
        shared = self.program.shared
        decided = self._decide(visible=True)
        self.program.shared |= shared
        return decided

    def _decide(self, *, visible: bool) -> tuple[str, str]:
        program = self.program
        try:
            program.begin(self.space, self.prompted, visible=visible, none_shows=self.none_shows)
            for name in self.program_names:
                try:
                    self.space[name] = program.global_name(name)
                except NameError:
                    self.space.pop(name, None)
            if self.postponed:
                exec(self.code, self.space)
                program.know(self.space)
            self.space["check"](program.candidate)
        except ProgramGone:
            return "RE", ""
        except BaseException as error:
            if program.failed:
                return "WA", "an assertion failed in a function of the test"
            if program.refused:
                return "WA", program.refused
            if error is program.raised:
                return "MLE" if isinstance(
                    error, MemoryError
                ) else "RE", f"raised {type(error).__name__}: {error}"
            return "WA", "an assertion failed" if isinstance(
                error, AssertionError
            ) else f"the test raised {type(error).__name__}"
        if program.failed:
            return "WA", "an assertion failed in a function of the test"
        return ("WA", program.refused) if program.refused else ("AC", "")


def _space_of(prompt: str) -> Space:
    """Return the names that a prompt defines; none if it is prose. It may end with the header of
    the requested function.
    """
    last = prompt.rstrip().rpartition("\n")[2]
    for text in (prompt, f"{prompt.rstrip()}\n{last[: len(last) - len(last.lstrip())]}    pass\n"):
        space: Space = {"__name__": "tests"}
        with contextlib.suppress(Exception):
            exec(compile(text, "prompt", "exec", dont_inherit=True), space)
            return space
    return {"__name__": "tests"}


def _globals(code: types.CodeType) -> set[str]:
    """Return the names that this code and the functions in it look up in the module."""
    names, extended = set(), 0
    for at in range(0, len(code.co_code), 2):  # dis gives the same, fifty times as slow
        operation, argument = code.co_code[at], code.co_code[at + 1] | extended
        extended = argument << 8 if operation == EXTENDED else 0
        if operation in LOADS:
            names.add(code.co_names[argument >> LOADS[operation]])
    return names.union(
        *(_globals(const) for const in code.co_consts if isinstance(const, types.CodeType))
    )


def _await_program(program: Program) -> None:
    try:
        program.receive()  # the message S
    except ProgramGone:
        send(b"U")  # it was never set up: the sandbox's fault
        os._exit(0)
    kind, body = program.receive()
    if kind == b"L":
        program.loaded = True
        send(b"L")
        return
    send(kind if kind in (b"C", b"X") else b"G", body[:1000].decode("utf-8", "replace"))
    os._exit(0)
