"""What a program cannot reach, on each isolation level that this machine supports."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Literal

import pytest

from sandbox.backends.local import IsolationError
from sandbox.protocol import Job, Report, StdioTest, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all
from sandbox.worker.core_lock import CoreLock
from sandbox.worker_process import Worker
from tests.sandbox.jobs import QUICK, call
from tests.sandbox.left import descendants


def says(sandbox: Sandbox, source: str) -> Report:
    """Return the report on a program; AC if it prints "yes", which means a breach."""
    return run_all(sandbox, [Job("job", source, "stdio", (StdioTest("", "yes"),), limits=QUICK)])[0]


def test_the_isolation_level_is_in_every_report(level: Sandbox) -> None:
    report = run_all(level, [call("def f(a, b):\n    return a + b")])[0]
    assert report.verdict is Verdict.AC
    assert report.isolation == level.describe() and level.config.isolation in level.describe()


@pytest.mark.parametrize("isolation", ["root", "userns", "bare"])
def test_allowed_packages_may_be_folders_or_single_files(
    isolation: Literal["root", "userns", "bare"],
) -> None:
    source = (
        "import six, dateutil.parser\nprint(dateutil.parser.parse('2026-11-21').year + six.PY3)"
    )
    job = Job("job", source, "stdio", (StdioTest("", "2027"),), packages=("six", "dateutil"))
    try:
        with Sandbox(
            SandboxConfig(workers=1, isolation=isolation, packages=("six", "dateutil"))
        ) as sandbox:
            assert run_all(sandbox, [job])[0].verdict is Verdict.AC
    except IsolationError as refused:
        pytest.skip(str(refused))


BREACHES = {
    "a TCP port of this host": (
        "import socket\nsocket.create_connection(('127.0.0.1', PORT), 1)\nprint('yes')"
    ),
    "the environment of the owner": (
        "import os\nif 'RATCHET_TEST_SECRET' in str(dict(os.environ)): print('yes')"
    ),
    "a file of the owner": "print(open('FILE').read())",
    "password hashes": "open('/etc/shadow')\nprint('yes')",
    "writing to the interpreter": (
        "import sys\nopen(sys.base_prefix + '/lib/hx', 'w')\nprint('yes')"
    ),
    "its parent's memory": "import os\nopen(f'/proc/{os.getppid()}/mem', 'rb')\nprint('yes')",
    "signals that handlers make deadly": (
        "import os\nfor n in (2, 15, 9):\n    os.kill(os.getppid(), n)\n"
        "import time; time.sleep(0.1)\nprint('no')"
    ),
    "its parent's limits": (
        "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))\n"
        "print('yes')"
    ),
    "its parent's processors": "import os\nos.sched_setaffinity(os.getppid(), {0})\nprint('yes')",
    "new namespaces": "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000) == 0: print('yes')",
    "being traced": "import ctypes\nif ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0: print('yes')",
    "System V memory": (
        "import ctypes\nif ctypes.CDLL(None).shmget(1, 4096, 0o1600) >= 0: print('yes')"
    ),
    "mounts": (
        "import ctypes\n"
        "if ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, 0) == 0: print('yes')"
    ),
    "another uid": "import os\nos.setuid(1)\nprint('yes')",
    "sockets of the network": "import socket\nsocket.socket()\nprint('yes')",
    "a higher limit": (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))\n"
        "print('yes')"
    ),
    "the project's tests": "import os\nos.listdir('ROOT')\nprint('yes')",
}


@pytest.mark.parametrize("what", BREACHES)
def test_a_breach_attempt_fails_on_every_isolation_level(
    level: Sandbox,
    what: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = tmp_path_factory.getbasetemp() / "secret"
    secret.write_text("yes")
    with socket.create_server(("127.0.0.1", 0)) as server:
        listens = threading.Thread(target=server.accept, daemon=True)
        listens.start()
        source = (
            BREACHES[what]
            .replace("PORT", str(server.getsockname()[1]))
            .replace("FILE", str(secret))
            .replace("ROOT", str(Path.cwd()))
        )
        report = says(level, source)
        socket.create_connection(server.getsockname()).close()  # lets the thread end
        listens.join()
    assert report.verdict in (Verdict.RE, Verdict.WA), report


def test_leftovers_of_a_program_are_invisible_to_the_next(level: Sandbox) -> None:
    leave = (
        "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('x')\nos.chmod('a', 0)\n"
        "open('d', 'w').close()\nos.chmod('.', 0)"
    )
    find = (
        "import os, glob\nprint('yes' if os.listdir() or glob.glob('/dev/shm/*') else 'no')\n"
        "open('mine', 'w')"
    )
    for _ in range(3):
        says(level, leave)
        assert says(level, find).verdict is Verdict.WA


def test_no_process_outlives_its_program(level: Sandbox) -> None:
    daemon = (
        "import os, time\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n"
        "        os.closerange(0, 99)\n        time.sleep(60)\n"
        "    os._exit(0)\n"
    )
    run_all(level, [call("def f(a, b):\n    return a + b")])
    before = descendants(os.getpid())
    report = run_all(level, [call(f"{daemon}def f(a, b):\n    return a + b")])[0]
    assert report.verdict is Verdict.AC
    assert descendants(os.getpid()) <= before


def test_an_unavailable_isolation_level_raises_and_is_never_lowered() -> None:
    nobody = ["unshare", "-U", sys.executable, "-m", "cli.main", "judge", "--isolation", "root"]
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-U", "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no user namespaces here to be nobody in")
    completed = subprocess.run(
        nobody, input="", capture_output=True, text=True, check=False, timeout=60
    )
    assert (
        completed.returncode == 3
        and completed.stdout == ""
        and "root needs uid 0" in completed.stderr
    )


def test_the_scratch_folder_is_reachable_with_any_uid() -> None:
    """The mode of the scratch folder lets a program with its own uid reach what it may write.

    At isolation level `bare`, whether a program has its own uid depends on the interpreter's
    location. The mode must not.
    """
    worker = Worker("bare", {}, os.pidfd_open(os.getpid()), CoreLock(None))
    try:
        assert Path(worker.scratch).stat().st_mode & 0o777 == 0o711
    finally:
        worker.close()
