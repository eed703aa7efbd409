"""Runs in the process of a program in another language: compiles it, or becomes it.

Descriptors: as in program.py. The request has the file's name and contents, then the command; an
empty name: there is no file. 6, where there is one, is for the compiled program: written by style
`compile`, executed by style `stdio`. No byte of the program is read before S is sent and the gate
passed.
"""

from __future__ import annotations

import os
import resource
import signal
from typing import NoReturn

from sandbox.child.program import CHANNEL, GATE, read_request, send

COMPILED, OUTPUT, CHUNK = 6, "program", 1 << 20


def run(style: str) -> NoReturn:
    """Compile the program, or become it; never returns."""
    send(b"S")
    os.read(GATE, 1)
    file, text, *command = read_request()
    if file:
        with open(file, "wb") as target:
            target.write(text)
    os.close(CHANNEL)
    os.close(GATE)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
        signal.signal(ignored, signal.SIG_DFL)
    if style == "compile":
        _compile(command)
    most = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (most, most))
    try:
        if command:
            os.execvp(command[0], command)
        os.set_inheritable(COMPILED, False)  # the next test runs the same file
        os.execve(COMPILED, [OUTPUT], os.environ)
    except OSError:
        os._exit(127)


def _compile(command: list[bytes]) -> NoReturn:
    try:
        compiler = os.posix_spawnp(command[0], command, os.environ)
    except OSError:
        os._exit(127)
    failed = os.waitpid(compiler, 0)[1] != 0
    if not failed and os.path.exists(OUTPUT):
        with open(OUTPUT, "rb") as made, open(COMPILED, "wb") as target:
            while chunk := made.read(CHUNK):
                target.write(chunk)
    os._exit(failed)
