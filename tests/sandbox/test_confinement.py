"""What a program cannot reach, on each isolation level that this machine supports."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from sandbox.backends.local import IsolationError
from sandbox.protocol import Job, Report, StdioTest, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all
from sandbox.worker_process import Worker
from tests.sandbox.jobs import QUICK, call, stdio
from tests.sandbox.left import descendants


def says(sandbox: Sandbox, source: str) -> Report:
    """Return the report on a program; AC if it prints "yes", which means a breach."""
    return run_all(sandbox, [Job("job", source, "stdio", (StdioTest("", "yes"),), limits=QUICK)])[0]


def test_the_isolation_level_is_in_every_report(level: Sandbox) -> None:
    report = run_all(level, [call("def f(a, b):\n    return a + b")])[0]
    assert report.verdict is Verdict.AC
    assert report.isolation == level.describe()
    assert level.config.isolation in level.describe()


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


TOUCHES = {
    "mode": "os.chmod(FILE, 0o600)",
    "mode by descriptor": "os.fchmod(os.open(LIBRARY, 0), 0o644)",
    "times": "os.utime(FILE, (1, 1))",
    "owner": "os.chown(FILE, -1, -1)",
    "length": "os.truncate(FILE, 0)",
    "length, by reading": "os.open(FILE, os.O_TRUNC)",
    "an attribute": "os.setxattr(FILE, 'user.a', b'1')",
    "a lease": "fcntl.fcntl(os.open(LIBRARY, 0), fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "a hint": "fcntl.fcntl(os.open(LIBRARY, 0), 1036, (2).to_bytes(8, 'little'))",
}


def test_foreign_files_cannot_be_changed(
    level: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (file := tmp_path_factory.getbasetemp() / "victim").write_text("x")
    head = "import os, fcntl, sys\nLIBRARY = os.path.realpath(os.__file__)\n"
    before = file.stat()
    sources = [head + touch.replace("FILE", repr(str(file))) for touch in TOUCHES.values()]
    assert verdicts(level, TOUCHES, sources) == dict.fromkeys(TOUCHES, "RE")
    assert file.stat() == before


def verdicts(sandbox: Sandbox, names: Iterable[str], sources: Iterable[str]) -> dict[str, str]:
    """Return the verdict of each program, which prints "yes" where nothing stops it."""
    jobs = [
        stdio(f"{source}\nprint('yes')", "", "yes", limits=replace(QUICK, memory_mb=512))
        for source in sources
    ]
    reports = run_all(sandbox, jobs)
    return {name: str(each.verdict) for name, each in zip(names, reports, strict=True)}


NAMELESS = {
    "open": "held.append(f)",
    "mapped": "held.append(mmap.mmap(f, 4096))\n    os.close(f)",
    "with a child": "if not os.fork(): time.sleep(30)\n    os.close(f)",
    "on its way": (
        "a, b = socket.socketpair()\n    held.append((a, b))\n"
        "    socket.send_fds(a, [b'x'], [f])\n    os.close(f)"
    ),
}


@pytest.mark.slow
def test_unlinked_files_are_counted(level: Sandbox) -> None:
    head = (
        "import os, time, mmap, socket\nheld = []\nfor i in range(6):\n"
        "    f = os.open(f'u{i}', os.O_RDWR | os.O_CREAT)\n    os.unlink(f'u{i}')\n"
        "    for _ in range(60): os.write(f, bytes(1 << 20))\n"
    )
    sources = [f"{head}    {held}\ntime.sleep(0.5)" for held in NAMELESS.values()]
    assert verdicts(level, NAMELESS, sources) == dict.fromkeys(NAMELESS, "RE")


PAGE_CACHE = {
    "a read that does not wait": "os.preadv(f, [bytearray(1)], 0, os.RWF_NOWAIT)",
    "mincore": "if libc.syscall(27, 0, 0, 0): raise OSError",
    "cachestat": (
        "if libc.syscall(451, f, (ctypes.c_uint64 * 2)(0, 4096), (ctypes.c_uint64 * 5)(), 0): "
        "raise OSError"
    ),
    "the kernel's own queue": (
        "if libc.syscall(206, 1, ctypes.byref(ctypes.c_uint64())): raise OSError"
    ),
}


def test_the_page_cache_cannot_be_probed(level: Sandbox) -> None:
    head = "import os, ctypes\nlibc = ctypes.CDLL(None)\nf = os.open(os.__file__, 0)\n"
    sources = [head + way for way in PAGE_CACHE.values()]
    assert verdicts(level, PAGE_CACHE, sources) == dict.fromkeys(PAGE_CACHE, "RE")


def test_folder_attributes_do_not_reach_the_next_program(level: Sandbox) -> None:
    leave = "import os\nos.setxattr('.', 'user.a', b'1')"
    find = "import os\nprint('yes' if os.listxattr('.') else 'no')"
    for _ in range(3):
        says(level, leave)
        assert says(level, find).verdict is Verdict.WA


def test_leftovers_of_a_program_are_invisible_to_the_next(level: Sandbox) -> None:
    leave = (
        "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('x')\nos.chmod('a', 0)\n"
        "open('d', 'w').close()\nos.chmod('.', 0)"
    )
    find = (
        "import os, glob\nfound = os.listdir() + glob.glob('/dev/shm/*')\n"
        "print('yes' if any('program.py' not in path for path in found) else 'no')\n"
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


def test_process_ids_reveal_nothing_about_earlier_programs(level: Sandbox) -> None:
    if level.config.isolation == "bare":
        pytest.skip("programs share the machine's process ids")
    source = (
        "import os\nfor _ in range(20):\n    if not (pid := os.fork()): os._exit(0)\n"
        "    os.waitpid(pid, 0)\nprint(os.getpid(), pid)"
    )
    assert len(printed(level, source)) == 1


@pytest.mark.slow
def test_the_zygote_reveals_nothing_about_earlier_programs(sandbox: Sandbox) -> None:
    source = (
        "import sys, time\nframe, told = sys._getframe(), []\nwhile frame:\n"
        "    held = frame.f_locals.get('self')\n"
        "    if held: told.append({k: v for k, v in vars(held).items() if isinstance(v, float) "
        "or k == 'running'})\n    frame = frame.f_back\n"
        "while time.process_time() < 0.05: pass\nprint(told)"
    )
    assert len(printed(sandbox, source)) == 1


def printed(sandbox: Sandbox, source: str) -> set[str]:
    """Return the distinct outputs of a program over four runs."""
    reports = run_all(sandbox, [Job("", source, "stdio", (StdioTest("", "?"),), limits=QUICK)] * 4)
    assert all("printed" in report.tests[0].detail for report in reports), reports
    return {report.tests[0].detail for report in reports}


def test_an_unavailable_isolation_level_raises_and_is_never_lowered() -> None:
    opening = (
        "from sandbox.sandbox import Sandbox, SandboxConfig\n"
        "Sandbox(SandboxConfig(workers=1, isolation='root')).__enter__()"
    )
    nobody = ["unshare", "-U", sys.executable, "-c", opening]
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-U", "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no user namespaces here to be nobody in")
    completed = subprocess.run(nobody, capture_output=True, text=True, check=False, timeout=60)
    assert completed.returncode == 1
    assert "IsolationError" in completed.stderr
    assert "root needs uid 0" in completed.stderr


def test_the_scratch_folder_is_reachable_with_any_uid() -> None:
    """The mode of the scratch folder lets a program with its own uid reach what it may write.

    At isolation level `bare`, whether a program has its own uid depends on the interpreter's
    location. The mode must not.
    """
    worker = Worker("bare", {}, os.pidfd_open(os.getpid()))
    try:
        assert Path(worker.scratch).stat().st_mode & 0o777 == 0o711
    finally:
        worker.close()
