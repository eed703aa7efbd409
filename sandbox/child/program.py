"""Runs in a program's own process. Nothing here is trusted: the program shares the interpreter and
can change all of it.

Descriptors: 0 stdin, 1 and 2 output, 3 the request (frames: entry point, source, then each call), 4
the channel to the worker or judge, 5 the gate: a byte arrives when the program may run.

Messages on the channel, by first byte:
- S set up, C not a Python program, L loaded, X exception
- R result, T result with numpy types as Python's, N result that is not plain data, M result and the
  arguments as they are now
- M with `unittest`: the result of a method (sandbox/child/test_cases.py)
- before the answer: K a call of a function of the tests, P what the call printed

With `assert` the requests arrive on the channel, and objects may cross (sandbox/child/objects.py).
A request is [args, kwargs, number of their parts] for the entry point; or [operation, args,
kwargs]; or one of "records", "captured" and "drop", which are not answered; or "returned" or
"raised", the answer to a K.
S is sent and the gate passed before a byte of the program is read. Earlier failures are the
sandbox's, later ones the program's.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import io
import linecache
import os
import struct
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any, NoReturn

from sandbox.child import test_cases
from sandbox.child.changed_parts import parts
from sandbox.child.object_handles import ObjectHandles, exception_fields, exception_tree
from sandbox.child.objects import encode_result
from sandbox.wire import NotPlain, decode, dump, frame

REQUEST, CHANNEL, GATE = 3, 4, 5
FILE = "program.py"
OUTER = 3  # parts of every call: [args, kwargs], args, kwargs


def send(kind: bytes, text: str = "", write: Callable[[int, memoryview], int] = os.write) -> None:
    """Send a message. write: bound here, because a fake file system of a test replaces os.write."""
    data = memoryview(frame(kind + text.encode("utf-8", "backslashreplace")))
    while data:
        data = data[write(CHANNEL, data) :]


def run(style: str) -> NoReturn:
    """Run the program and end the process; never returns. `use_streams` was called before
    the fork.
    """
    send(b"S")
    os.read(GATE, 1)
    entry_point, source, *calls = _request()
    os.close(GATE)
    try:
        code = _compiled(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        send(b"C", f"{type(error).__name__}: {error}"[:300])
        os._exit(0)
    if style != "unittest":  # whose tests may count the files in the folder
        _place(source)
    if style == "stdio":
        _script(code)
    module = _module("program")
    candidate = _load(code, module, entry_point)
    send(b"L")
    if style == "unittest":
        test_cases.run(module, calls[0], send)
    if style == "call":
        for call in calls:
            _answer(candidate, call)
        os._exit(0)
    turn = threading.RLock()  # several threads of the program may call a function of the tests

    def call_back(number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with turn:
            return _call_back(handles, candidate, handles.encode([number, list(args), kwargs]))

    handles = ObjectHandles(module, call_back)
    while request := _receive():
        _serve(handles, candidate, request)
    os._exit(0)


def rehearse() -> None:
    """Do what `run` does with a correct program of style `call`, in a process that continues
    afterwards.
    """
    main = sys.modules["__main__"]
    send(b"S")
    os.read(GATE, 1)
    entry_point, source, *calls = _request()
    candidate = _load(_compiled(source), _module("program"), entry_point)
    for call in calls:
        _answer(candidate, call)
    del sys.modules["program"]
    sys.modules["__main__"] = main


def _request() -> list[str]:
    return [part.decode("utf-8", "surrogatepass") for part in read_request()]


def _compiled(source: str) -> types.CodeType:
    """Compile a program as CPython does a file: without its byte order mark, and with its lines
    known to `inspect`, to tracebacks and to `doctest`. Raises what `compile` does.
    """
    source = source.removeprefix("\ufeff")
    lines = [f"{line}\n" for line in source.split("\n")]
    linecache.cache[FILE] = (len(source), None, lines, FILE)
    return compile(source, FILE, "exec", dont_inherit=True)


def _place(source: str) -> None:
    """Make the program a file in its folder, where the processes that it starts find it: by its
    path, or by its name, as those of `multiprocessing` with the method spawn do.
    """
    with contextlib.suppress(OSError):
        file = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        os.write(file, source.encode("utf-8", "surrogatepass"))
        os.close(file)
    sys.path.insert(0, os.getcwd())


def read_request() -> list[bytes]:
    """Return the frames of the request."""
    size = os.fstat(REQUEST).st_size
    data = bytearray()
    while len(data) < size:
        data += os.pread(REQUEST, size - len(data), len(data))
    os.close(REQUEST)
    frames, at = [], 0
    while at < size:
        (length,) = struct.unpack_from(">I", data, at)
        frames.append(bytes(data[at + 4 : at + 4 + length]))
        at += 4 + length
    return frames


def use_streams() -> None:
    """Create the program's standard streams on descriptors 0 to 2, whatever these are at
    the time.
    """
    sys.stdin, sys.stdout, sys.stderr = _streams()
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    sys.argv = [FILE]


def _streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper]:
    return (
        open(0, encoding="utf-8", errors="surrogateescape", closefd=False),
        open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False),
        open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False),
    )


def _module(name: str) -> types.ModuleType:
    """Create a real module, so that dataclasses, typing and pickle find it. The main module is it,
    or an empty one: processes that a program starts must not run that of this process.
    """
    module = types.ModuleType(name)
    module.__file__ = os.path.join(os.getcwd(), FILE)
    sys.modules[name] = module
    if name != "__main__":
        sys.modules["__main__"] = types.ModuleType("__main__")
    return module


def _script(code: types.CodeType) -> NoReturn:
    """Run a script as the interpreter would: run it, wait for threads, run exit handlers, flush.
    All of it counts as the program.
    """
    status = 0
    # scripts expect these two, which the module site defines
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]
    try:
        exec(code, _module("__main__").__dict__)
    except SystemExit as ended:
        status = _exit_status(ended)
    except BaseException as error:
        status = 1
        _report(error)
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        # without the frame of this file
        traceback.print_exception(
            error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
        )
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except Exception:
        status = 120  # as the interpreter does
    os._exit(status)


def _exit_status(ended: SystemExit) -> int:
    if ended.code is None:
        return 0
    if isinstance(ended.code, int):
        return ended.code & 0xFF
    print(ended.code, file=sys.stderr)
    return 1


def _load(code: types.CodeType, module: types.ModuleType, entry_point: str) -> Any:
    """Run the source and return its entry point: a name in the module, or a method written as
    `Class().method`. Of several lines, the first one that the module has counts.
    """
    try:
        exec(code, module.__dict__)
        names = [line.partition("().") for line in entry_point.split("\n")]
        name, _, method = next((each for each in names if hasattr(module, each[0])), names[0])
        target = getattr(module, name)
        return getattr(target(), method) if method else target
    except BaseException as error:
        _report(error)
        os._exit(1)


def _report(error: BaseException) -> None:
    """Send the exception's name and message, and whether memory ran out."""
    send(b"X", dump(exception_fields(error)))


def _answer(candidate: Any, call: str | bytes) -> None:
    try:
        args, kwargs = decode(call)
        answer, of_numpy = encode_result(candidate(*args, **kwargs))
    except NotPlain as error:
        send(b"N", str(error)[:300])
    except BaseException as error:
        _report(error)
    else:
        send(b"T" if of_numpy else b"R", answer)


def _serve(handles: ObjectHandles, candidate: Any, text: bytes) -> None:
    """Answer one request of an `assert` job's judge."""
    try:
        what, *rest = request = handles.decode(text)
        if what == "records":
            handles.records = set(rest[0])
        elif what == "captured":
            handles.captured = rest[0]
        elif what == "drop":
            handles.drop(rest[0])
        elif isinstance(what, str):
            send(b"R", handles.encode(handles.do(what, *rest)))
        else:
            _call(handles, candidate, request, text.decode())
    except NotPlain as error:
        send(b"N", str(error)[:300])
    except BaseException as error:
        send(b"X", dump(exception_tree(error)))


def _call(handles: ObjectHandles, candidate: Any, request: list[Any], text: str) -> None:
    """Call the entry point and send its result, and the changed arguments where they matter."""
    args, kwargs, count = request
    shared_parts = parts([args, kwargs], handles.record_name)
    # A value may cross as another type; then the parts do not match.
    if len(shared_parts) != count:
        shared_parts = []
    result = _printed(candidate, args, kwargs) if handles.captured else candidate(*args, **kwargs)
    if len(shared_parts) > OUTER and handles.encode(request) != text:
        send(b"M", handles.encode_changed(result, shared_parts))
    else:
        send(b"R", handles.encode(result, shared_parts))


def _printed(candidate: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call the entry point for a test that captures standard output; send the output ahead of the
    result.
    """
    text = io.StringIO()
    stdout, sys.stdout = sys.stdout, text
    try:
        return candidate(*args, **kwargs)
    finally:
        sys.stdout = stdout
        send(b"P", text.getvalue())


def _call_back(handles: ObjectHandles, candidate: Any, call: str) -> Any:
    """Have a function of the tests called in their process. Meanwhile the tests may send requests
    to this process.
    """
    send(b"K", call)
    while request := _receive():
        what, *rest = handles.decode(request)
        if what == "returned":
            return rest[0]
        if what == "raised":
            kind = getattr(builtins, rest[0], None)
            raise (
                kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError
            )(rest[1])
        _serve(handles, candidate, request)
    os._exit(0)


def _receive() -> bytes:
    """Return one request from the judge, or nothing when the judge is gone."""
    (length,) = struct.unpack(">I", head) if len(head := _exactly(4)) == 4 else (0,)
    return _exactly(length)


def _exactly(size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (more := os.read(CHANNEL, size - len(data))):
            return b""
        data += more
    return bytes(data)
