"""Attempted system calls of a program are counted by kind, on each isolation level.

Calls that the interpreter and its libraries make on their own are not counted.
"""

from __future__ import annotations

import pytest

from sandbox.protocol import Limits, Report
from sandbox.sandbox import Sandbox, run_all
from tests.sandbox.jobs import call, stdio

NOTHING = {"call": 0, "exec": 0, "socket": 0, "file": 0}
LIMITS = Limits(wall_s=60.0, cpu_s=20.0, memory_mb=512)
HEAD = """import contextlib, ctypes, os, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def forked(do):
    if not os.fork():
        try: do()
        finally: os._exit(0)
    os.wait()
with contextlib.suppress(Exception):
"""

INNOCENT = (
    "import gc; gc.disable()",
    "host = '0.0.0.0'",
    "import inspect; inspect.stack()",
    "eval('1')",
    "import pickle; pickle.loads(pickle.dumps([1]))",
    "import uuid; uuid.uuid1(); uuid.getnode(); uuid.uuid4()",
    "import platform; platform.uname(); platform.platform(); platform.processor()",
    (
        "import tempfile; tempfile.mkdtemp(); tempfile.NamedTemporaryFile().write(b'x'); "
        "tempfile.TemporaryFile()"
    ),
    (
        "import multiprocessing as m; q = m.Queue(); p = m.Process(target=q.put, args=(1,)); "
        "p.start(); q.get(); p.join()"
    ),
    (
        "from multiprocessing import shared_memory as s; a = s.SharedMemory(create=True, "
        "size=10); a.close(); a.unlink()"
    ),
    "import multiprocessing as m; m.Manager().list([1])",
    "import numpy, numpy.random; numpy.linalg.inv(numpy.eye(3))",
    "import asyncio; asyncio.run(asyncio.sleep(0))",
    "import pwd, getpass; os.path.expanduser('~nobody'); pwd.getpwuid(os.getuid())",
    "os.nice(1)",
    "subprocess.run([sys.executable, '-c', 'import json'])",
    "subprocess.run([sys.executable, '-I', '-c', 'import imaplib'])",
    "import zoneinfo; zoneinfo.ZoneInfo('Europe/Berlin')",
    "import random, secrets, ssl, sqlite3, mimetypes, locale; mimetypes.init()",
    "import traceback; 1 / 0",
    (
        "import linecache; [linecache.getline(f.co_filename, 1) "
        "for f in [contextlib.suppress.__exit__.__code__]]"
    ),
    (
        "open('a', 'w').close(); os.rename('a', 'b'); os.symlink('b', 'c'); os.link('b', 'd'); "
        "os.chmod('b', 0o600); os.unlink('b'); os.mkdir('e')"
    ),
    (
        "os.makedirs('f/g'); os.symlink('f', 'h'); open('h/g/i', 'w').close(); os.listdir('h'); "
        "os.unlink('h/g/i'); os.unlink('h'); open('f/k', 'w')"
    ),
    (
        "os.makedirs('q/w/e'); import shutil; shutil.rmtree('q'); open('/tmp/x', 'w'); "
        "open('/dev/null', 'w'); open('/dev/stdin')"
    ),
    "open('/proc/self/status').read(); os.listdir('/proc/self/fd')",
    "open('/proc/cpuinfo'); os.cpu_count(); os.sched_getaffinity(0)",
    "a, b = socket.socketpair(); a.send(b'x')",
    "os.listdir('/'); os.listdir('/usr/lib')",
    "import resource; resource.setrlimit(4, (0, 0))",
    "os.kill(os.getpid(), 0); os.getpgid(0); os.getloadavg()",
    "from concurrent.futures import *; list(ProcessPoolExecutor(2).map(abs, [1]))",
    "raise ValueError",
    "import logging, logging.handlers; logging.warning('x')",
    "import unittest, doctest; doctest.testmod()",
)
GUILTY = {
    "exec": (
        "getattr(os, 'sys' + 'tem')('true')",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "subprocess.run(['/bin/true'])",
        "os.popen('true').read()",
        "forked(lambda: os.execv('/bin/true', ['true']))",
        "forked(lambda: libc.execve(b'/bin/true', None, None))",
        "forked(lambda: os.execv('/bin/sh', ['sh', '-c', 'exec uname']))",
        "subprocess.run(['/nothing/like/this'])",
        "forked(lambda: libc.syscall(322, -100, b'/bin/true', None, None, 0))",
        "subprocess.run([sys.executable, '-c', 'import os; os.system(\"true\")'])",
        (
            "d = os.memfd_create('x'); os.write(d, open('/bin/true', 'rb').read()); "
            "forked(lambda: os.execve(d, ['x'], {}))"
        ),
        (
            "forked(lambda: os.execv(min(__import__('glob').glob('/lib64/ld-linux*')), ['ld', "
            "'/bin/true']))"
        ),
    ),
    "socket": (
        "import _socket; _socket.socket()",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "libc.socket(2, 1, 0)",
        "libc.syscall(41, 2, 2, 0)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "socket.create_connection(('127.0.0.1', 80))",
    ),
    "file": (
        "open('/usr/lib/x', 'w')",
        "open('/etc/shadow')",
        "open('/usr/../etc//shadow')",
        "open('/proc/self/root/etc/shadow')",
        "os.listdir('/root')",
        "os.chdir('/usr'); open('../etc/shadow')",
        "os.unlink('/usr/bin/python3')",
        "os.mkdir('/etc/x')",
        "open(f'/proc/{os.getppid()}/environ')",
        "os.symlink('/', 'r'); open('r/etc/shadow')",
        "libc.syscall(437, -100, b'/etc/shadow', b'\\0' * 24, 24)",
        "open('/proc/sysrq-trigger', 'w')",
        (
            "os.makedirs('a/b/c/d/e/f/g'); os.symlink('../' * 7 + 'etc', 'a/b/c/d/e/f/g/l'); "
            "os.rename('a/b/c/d/e/f/g/l', 'l'); open('l/shadow')"
        ),
        (
            "os.makedirs('x/y'); os.symlink(os.getcwd(), 'x/y/d'); "
            "open('x/y/d/' + '../' * os.getcwd().count('/') + 'etc/shadow')"
        ),
        "d = os.open('/usr/lib', 0); os.open('../../etc/shadow', 0, dir_fd=d)",
        "open('/home/x/.aws/keys')",
        "os.rename('/usr/bin', '/usr/bim')",
        "libc.open(b'/home/x/.ssh/id_rsa', 0)",
        "os.open('/usr/lib/x', os.O_CREAT)",
    ),
    "call": (
        "libc.ptrace(0, 0, 0, 0)",
        "libc.unshare(0x10000000)",
        "libc.mount(b'x', b'/', b'tmpfs', 0, 0)",
        "os.mknod('d', 0o020600, 0x101)",
    ),
}


def tried(sandbox: Sandbox, programs: tuple[str, ...]) -> list[Report]:
    return run_all(
        sandbox, [stdio(f"{HEAD}    {text}\n", "", "", limits=LIMITS) for text in programs]
    )


@pytest.mark.slow
def test_honest_programs_make_no_attempts(level: Sandbox) -> None:
    assert {
        text: report
        for text, report in zip(INNOCENT, tried(level, INNOCENT), strict=True)
        if report.tried != NOTHING
    } == {}


@pytest.mark.parametrize("kind", GUILTY)
def test_every_form_of_an_attempt_is_counted_by_kind(level: Sandbox, kind: str) -> None:
    reports = zip(GUILTY[kind], tried(level, GUILTY[kind]), strict=True)
    assert {
        text: report for text, report in reports if not (report.tried and report.tried[kind] > 0)
    } == {}


def test_attempts_do_not_carry_over_to_the_next_program(level: Sandbox) -> None:
    guilty, honest = tried(level, ("os.system('true')", "pass"))
    assert guilty.tried == NOTHING | {"exec": 1}
    assert honest.tried == NOTHING


def test_a_connection_to_a_system_service_is_an_attempt(sandbox: Sandbox) -> None:
    program = "socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')"
    [report] = tried(sandbox, (program,))
    if report.isolation.startswith("bare"):
        pytest.skip("bare refuses the socket itself, and libc asks for such sockets too")
    assert report.tried == NOTHING | {"socket": 1}


def test_calls_before_and_after_a_program_are_not_counted(level: Sandbox) -> None:
    job = call("def f(a, b): return a + b\nopen('left', 'w')\n")
    assert [report.tried for report in run_all(level, [job] * 3)] == [NOTHING] * 3
