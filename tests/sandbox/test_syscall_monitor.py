"""Refused system calls are counted outside the program.

Signals reach no process but the program's own, on old and new kernels.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox.protocol import Limits, Report, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all
from sandbox.worker import slot
from sandbox.worker_process import Worker
from tests.sandbox.jobs import call, stdio

F = "def f(a, b): return a + b\n"
LIBC = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"


def judged(sandbox: Sandbox, source: str) -> Report:
    return run_all(sandbox, [call(source)])[0]


def test_an_honest_program_has_no_refused_calls(level: Sandbox) -> None:
    source = (
        "import subprocess, sys, threading, tempfile, random, json\n"
        "with tempfile.TemporaryFile() as t: t.write(b'x')\n"
    ) + F
    source += (
        "t = threading.Thread(target=print)\nt.start()\nt.join()\nsubprocess.run(['/bin/true'])\n"
    )
    report = judged(level, source)
    assert (report.verdict, report.denied) == (Verdict.AC, {}), report


def test_refused_calls_are_counted_by_name(level: Sandbox) -> None:
    source = (
        LIBC
        + (
            "for _ in range(3): libc.ptrace(0, 0, 0, 0)\nlibc.unshare(0x10000000)\n"
            "libc.mount(b'x', b'/', b'tmpfs', 0, 0)\nlibc.socket(2, 1, 0)\n"
        )
        + F
    )
    assert judged(level, source).denied == {"ptrace": 3, "unshare": 1, "mount": 1, "socket": 1}
    assert judged(level, F).denied == {}  # nothing is left over for the next program


def test_refused_calls_of_children_are_counted(level: Sandbox) -> None:
    source = (
        LIBC
        + (
            "import os\nif not os.fork():\n    os.setsid()\n    libc.setns(0, 0)\n"
            "    os._exit(0)\nos.wait()\n"
        )
        + F
    )
    assert judged(level, source).denied == {"setns": 1}


def test_a_caller_killed_while_waiting_blocks_nothing(level: Sandbox) -> None:
    flood = LIBC + (
        "import os\nfor _ in range(20):\n    pid = os.fork()\n    if not pid:\n"
        "        while True: libc.ptrace(0, 0, 0, 0)\n"
    )
    # on a busy machine a child has used much CPU time before it is killed
    limits = Limits(wall_s=60.0, cpu_s=20.0)
    report = run_all(
        level, [call(flood + "    os.kill(pid, 9)\n    os.waitpid(pid, 0)\n" + F, limits=limits)]
    )[0]
    assert report.verdict is Verdict.AC
    assert judged(level, F).verdict is Verdict.AC


@pytest.mark.slow
def test_a_flood_of_refused_calls_ends_at_the_programs_deadline(level: Sandbox) -> None:
    begun = time.monotonic()
    report = run_all(
        level,
        [call(LIBC + "while True: libc.ptrace(0, 0, 0, 0)", limits=Limits(wall_s=0.5, cpu_s=0.5))],
    )[0]
    assert report.verdict is Verdict.TLE
    assert report.denied
    assert report.denied["ptrace"] > 10
    assert time.monotonic() - begun < 20, "it ends before the worker is replaced"
    assert judged(level, F).verdict is Verdict.AC


OLD_KERNEL = (
    "import runpy, sys\nsys.path.append({root!r})\n"
    "from sandbox.isolation import levels as isolation; from sandbox.isolation import "
    "landlock\n"
    "landlock.version = lambda: {abi}\n"
)
OLD_KERNEL += (
    "isolation.has_own_uid = lambda level: False\nrunpy.run_path({zygote!r}, run_name='__main__')\n"
)


ZYGOTE = slot.ZYGOTE


def older(folder: Path, patch: pytest.MonkeyPatch, abi: int) -> None:
    """Make zygotes assume this version of the Landlock ABI, and no uid for programs."""
    script = folder / "zygote.py"
    script.write_text(OLD_KERNEL.format(root=str(Path.cwd()), zygote=str(ZYGOTE), abi=abi))
    patch.setattr(slot, "ZYGOTE", script)


@pytest.fixture(scope="module")
def without_scopes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with pytest.MonkeyPatch.context() as patch:
        older(tmp_path_factory.mktemp("old"), patch, 5)
        worker = Worker("bare", {}, os.pidfd_open(os.getpid()))
        yield worker
        worker.close()


def says(worker: Worker, source: str) -> str:
    """Return the verdict: AC if the program prints "yes"."""
    return str(worker.judge(json.loads(stdio(source, "", "yes").payload))["verdict"])


WAYS = {
    "kill": "os.kill(VICTIM, 9)",
    "everybody": "os.kill(-1, 9)",
    "its group": "os.killpg(VICTIM, 9)",
    "its group, by kill": "os.kill(-VICTIM, 9)",
    "a thread": "libc.syscall(200, VICTIM, 9)",
    "a thread of a process": "libc.tgkill(VICTIM, VICTIM, 9)",
    "a thread of its own process": "libc.syscall(234, os.getpid(), VICTIM, 9)",
    "a queued signal": "libc.sigqueue(VICTIM, 9, 0)",
    "a descriptor of the process": (
        "import signal\nsignal.pidfd_send_signal(os.pidfd_open(VICTIM), 9)"
    ),
    "a descriptor that it owns": (
        "import fcntl\nr, w = os.pipe()\nfcntl.fcntl(r, 8, VICTIM)\nfcntl.fcntl(r, 10, 9)\n"
        "fcntl.fcntl(r, 4, 0o20000)\nos.write(w, b'x')"
    ),
    "a descriptor, by ioctl": (
        "import fcntl, struct, socket\na, b = socket.socketpair()\n"
        "fcntl.ioctl(a, 0x8901, struct.pack('i', VICTIM))\n"
        "fcntl.fcntl(a, 10, 9)\nfcntl.fcntl(a, 4, 0o20000)\nb.send(b'x')"
    ),
    "its parent": "os.kill(os.getppid(), 9)",
    "from a child of its own": "pid = os.fork()\nif not pid: os.kill(VICTIM, 9)\nos.wait()",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_signal_reaches_other_processes_on_an_older_kernel(
    without_scopes: Worker, way: str
) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as victim:
        says(without_scopes, LIBC + "import os\n" + WAYS[way].replace("VICTIM", str(victim.pid)))
        alive = victim.poll() is None
        victim.kill()
    assert alive
    assert says(without_scopes, "print('yes')") == "AC"


def test_a_program_can_signal_its_own_processes_on_an_older_kernel(without_scopes: Worker) -> None:
    source = (
        "import os, signal, subprocess, threading\np = subprocess.Popen(['/bin/sleep', '60'])\n"
        "p.kill()\nassert p.wait() == -9\n"
    )
    source += (
        "signal.signal(signal.SIGUSR1, lambda *a: print('yes'))\n"
        "signal.raise_signal(signal.SIGUSR1)\n"
    )
    source += (
        "c = os.fork()\nif not c:\n    os.setsid()\n    os.kill(os.getppid(), 0)\n"
        "    signal.pause()\nos.kill(c, 9)\n"
    )
    source += "assert os.wait()[1] == signal.SIGKILL"
    assert says(without_scopes, source) == "AC"


# the name of processes that a program leaves; another process may run the same test
LEFT = f"hx-left-{os.getpid()}"


def test_no_process_outlives_its_program_on_an_older_kernel(without_scopes: Worker) -> None:
    leave = (
        "import os\nfor _ in range(3):\n    if not os.fork():\n        os.setsid()\n"
        f"        os.execv('/bin/sleep', ['{LEFT}', '60'])\nprint('yes')"
    )
    assert says(without_scopes, leave) == "AC"
    assert left() == []


@pytest.mark.parametrize(
    ("victim", "generations"), [("the zygote", 2), ("its outer half", 3), ("the worker", 4)]
)
def test_no_process_outlives_its_runner_without_a_pid_namespace(
    victim: str, generations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.sandbox.ATTEMPTS", 1)
    leave = (
        "import os, time\nif not os.fork():\n    os.setsid()\n"
        f"    os.execv('/bin/sleep', ['{LEFT}', '300'])\ntime.sleep(300)\n"
    )
    with Sandbox(SandboxConfig(workers=1, isolation="bare")) as sandbox:
        running = threading.Thread(
            target=lambda: run_all(sandbox, [call(leave, limits=Limits(wall_s=300))])
        )
        running.start()
        while not (pids := left()):
            assert running.is_alive(), "the program ended"
            time.sleep(0.01)
        [pid] = pids
        for _ in range(generations):
            pid = psutil.Process(pid).ppid()
        os.kill(pid, signal.SIGKILL)
        running.join()
    until = time.monotonic() + 20  # the process that notices the death must first be scheduled
    while left() and time.monotonic() < until:
        time.sleep(0.01)
    assert left() == []


def left() -> list[int]:
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            if (process / "cmdline").read_bytes().startswith(f"{LEFT}\0".encode()):
                pids.append(int(process.name))
    return pids


def test_without_landlock_bare_is_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older(tmp_path, monkeypatch, 0)
    with pytest.raises(slot.LevelRefused, match="Landlock"):
        Worker("bare", {}, os.pidfd_open(os.getpid()))
