"""What programs with unittests see of a machine, on levels with namespaces, and what they do not
reach with it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from sandbox.backends.local import IsolationError
from sandbox.config import SandboxConfig
from sandbox.protocol import Job, Report, StdioTest, UnittestTest, Verdict
from sandbox.sandbox import Sandbox, run_all

CASES = """
import unittest
class TestCases(unittest.TestCase):
    def test_it(self):
        self.assertTrue(f())
"""
CONNECT = """
import socket
def f():
    with socket.create_server(("localhost", 47814)) as server:
        with socket.create_connection(("localhost", 47814)) as client:
            accepted, _ = server.accept()
            accepted.sendall(b"x")
            accepted.close()
            return client.recv(1) == b"x"
"""
HONEST = {
    "a connection to itself": CONNECT,
    "a script that it wrote": (
        "import os, subprocess\ndef f():\n"
        "    with open('x.sh', 'w') as file: file.write('#!/bin/sh\\necho yes')\n"
        "    os.chmod('x.sh', 0o755)\n"
        "    return subprocess.check_output(['./x.sh']) == b'yes\\n'"
    ),
    "the machine's memory": "def f(): return 'MemTotal' in open('/proc/meminfo').read()",
}
REACHES = {
    "another machine": (
        "import errno, socket\ndef f():\n"
        "    return socket.socket().connect_ex(('192.0.2.1', 80)) != errno.ENETUNREACH"
    ),
    "a server of this machine": (
        "import socket\ndef f():\n    return socket.socket().connect_ex(('127.0.0.1', PORT)) == 0"
    ),
    "other sockets than TCP and UDP": (
        "import errno, socket\n"
        "KINDS = (2, 3, 1), (2, 1, 132), (2, 1, 262), (2, 5, 0), (2, 2, 1), (16, 3, 0)\n"
        "def refused(kind):\n    try: socket.socket(*kind)\n"
        "    except PermissionError: return True\n"
        "def f(): return not all(map(refused, KINDS))"
    ),
    "files of the kernel": (
        "import os\nSHOWN = {'cpuinfo', 'loadavg', 'meminfo', 'stat', 'uptime', 'mounts'}\n"
        "def read(name):\n    with open(f'/proc/{name}', 'rb') as file: return file.read(1)\n"
        "def f():\n"
        "    names = {name for name in os.listdir('/proc') if not name.isdigit()} - SHOWN\n"
        "    names -= {'self', 'thread-self', 'net'}\n"
        "    files = {name for name in names if os.path.isfile(f'/proc/{name}')}\n"
        "    folders = {name for name in names if os.path.isdir(f'/proc/{name}')}\n"
        "    return any(map(read, files)) or any(os.listdir(f'/proc/{n}') for n in folders)"
    ),
    "other processes": (
        "import os\ndef f():\n"
        "    pids = {int(name) for name in os.listdir('/proc') if name.isdigit()}\n"
        "    return bool(pids - {1, os.getpid()})"
    ),
}


@pytest.fixture(scope="module", params=["root", "userns"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        with Sandbox(SandboxConfig(workers=1, isolation=request.param, packages=())) as sandbox:
            yield sandbox
    except IsolationError as refused:
        pytest.skip(str(refused))


def report_of(sandbox: Sandbox, source: str) -> Report:
    job = Job("job", source, "unittest", (UnittestTest(CASES),), "f")
    return run_all(sandbox, [job])[0]


@pytest.mark.parametrize("what", HONEST)
def test_unittests_may_use(sandbox: Sandbox, what: str) -> None:
    report = report_of(sandbox, HONEST[what])
    assert report.verdict is Verdict.AC, report


@pytest.mark.parametrize("what", REACHES)
def test_unittests_do_not_reach(sandbox: Sandbox, what: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = REACHES[what].replace("PORT", str(server.getsockname()[1]))
        report = report_of(sandbox, source)
    assert report.verdict is Verdict.WA, report


def test_a_program_leaves_no_connection_to_the_next(sandbox: Sandbox) -> None:
    # Without SO_REUSEADDR, a connection that its server has closed would keep the port a minute.
    strict = CONNECT.replace(
        'socket.create_server(("localhost", 47814))', "socket.socket()"
    ).replace(
        "        with socket.create_connection",
        '        server.bind(("localhost", 47814))\n        server.listen()\n'
        "        with socket.create_connection",
    )
    for _ in range(2):
        report = report_of(sandbox, strict)
        assert report.verdict is Verdict.AC, report


def test_a_connection_to_another_machine_counts_as_an_attempt(sandbox: Sandbox) -> None:
    report = report_of(sandbox, REACHES["another machine"])
    if report.tried is None:
        pytest.skip("attempts are not counted here")
    assert report.tried["socket"] == 1


@pytest.mark.parametrize("what", HONEST)
def test_programs_of_other_styles_see_none_of_it(sandbox: Sandbox, what: str) -> None:
    job = Job("job", f"{HONEST[what]}\nprint(f())", "stdio", (StdioTest("", "True"),))
    report = run_all(sandbox, [job])[0]
    assert report.verdict is Verdict.RE, report
