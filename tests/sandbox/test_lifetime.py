"""How long a program, its child processes and its messages may persist.

Nothing outlives its job or its owner, and no more is stored than is allowed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Literal

import psutil
import pytest

from sandbox.isolation.process_tree import children
from sandbox.protocol import CallTest, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all
from sandbox.worker.slot import sweep
from tests.sandbox.jobs import QUICK, asserting, call, stdio
from tests.sandbox.left import descendants

RIGHT = "def f(a, b):\n    return a + b\n"
# The writer is a child: the program itself returns an answer and ends, and the pipe is still
# written. A frame of 'xxxx' bytes would be too long.
FLOODS = {
    "empty messages": "os.write(4, bytes(65536))",
    "a message that goes on for ever": "os.write(4, b'\\2' + b'x' * 9)",
    "errors byte by byte": "os.write(2, b'x')",
}
# The first thread ends on its own: the process is shown as a zombie, and is still running.
LEADER_LEAVES = """
import ctypes, os, threading, time
def leave(stay):
    threading.Thread(target=stay, daemon=True).start()
    time.sleep(0.05)
    ctypes.CDLL(None).syscall(60, 0)
"""
STAYS = {
    "a thread": "leave(lambda: time.sleep(60))",
    "a thread of another session": "os.setsid(), leave(lambda: time.sleep(60))",
    "a thread that forks": "leave(lambda: [os.fork() or time.sleep(60) for _ in range(5)])",
    "another program": "leave(lambda: os.execv('/bin/sleep', ['sleep', '60']))",
    "one below another": "leave(lambda: os.fork() or leave(lambda: time.sleep(60)))",
}


def workers() -> list[int]:
    return [
        pid
        for pid in children(os.getpid())
        if "worker_process.py" in Path(f"/proc/{pid}/cmdline").read_text()
    ]


def below_workers() -> int:
    return sum(len(descendants(pid)) for pid in workers())


@pytest.mark.parametrize("what", FLOODS)
def test_a_child_that_keeps_writing_delays_no_verdict(level: Sandbox, what: str) -> None:
    source = (
        f"import os, time\nif os.fork() == 0:\n    while True:\n        {FLOODS[what]}\n"
        "time.sleep(0.1)\nprint(5, flush=True)\nos._exit(0)"
    )
    assert (
        run_all(level, [stdio(source, "", "5", limits=replace(QUICK, output_kb=1 << 15))])[
            0
        ].verdict
        is Verdict.AC
    )


def test_output_after_the_last_answer_is_not_read(level: Sandbox) -> None:
    """The next job's messages are its own."""
    flood = "import os\nif os.fork() == 0:\n    while True: os.write(4, bytes(65536))\n" + RIGHT
    verdicts = [report.verdict for report in run_all(level, [call(flood), call(RIGHT)] * 5)]
    assert Verdict.INFRA not in verdicts
    assert set(verdicts[1::2]) == {Verdict.AC}


@pytest.mark.parametrize("what", STAYS)
def test_a_process_without_its_first_thread_ends_with_its_job(level: Sandbox, what: str) -> None:
    before = below_workers()
    source = f"{LEADER_LEAVES}\nif os.fork() == 0:\n    {STAYS[what]}\ntime.sleep(0.3)\nprint(5)"
    assert run_all(level, [stdio(source, "", "5")])[0].verdict is Verdict.AC
    assert below_workers() == before


@pytest.mark.slow
def test_a_program_without_its_first_thread_times_out(level: Sandbox) -> None:
    before = below_workers()
    source = f"{LEADER_LEAVES}leave(lambda: time.sleep(60))"
    assert (
        run_all(level, [call(source, limits=replace(QUICK, wall_s=1.0))])[0].verdict is Verdict.TLE
    )
    assert below_workers() == before


def held(pid: int) -> int:
    """Return the peak resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) << 10


@pytest.mark.slow
def test_a_worker_stores_no_more_than_the_job_limits() -> None:
    fill = "import os, struct\nwhile True: os.write(4, struct.pack('>I', 4096) + bytes(4096))"
    # stored one by one, the bytes would take forty times as much memory
    bytewise = "import os\nfor _ in range(100_000): os.write(1, b'x')"
    tree = (
        "import os, struct\nanswer = b'R[' + b'[],' * (2 << 20) + b'1]'\n"
        "left = memoryview(struct.pack('>IcI', 1, b'L', len(answer)) + answer)\n"
        "while left: left = left[os.write(4, left):]"
    )
    answers = "def f(a, b):\n    return 'x' * (4 << 20)"
    check = "def check(args, got, expected):\n    return True"
    tests = (CallTest((2, 3), {}, [5]),)
    limits = replace(QUICK, memory_mb=64, output_kb=1024)
    small = replace(limits, memory_mb=32)
    jobs = [
        stdio(fill, "", "5", limits=replace(limits, wall_s=1.0)),
        stdio(bytewise, "", "5", limits=limits),
        replace(call(tree, *tests, limits=limits), compare="set"),
        replace(call(answers, *tests * 9, limits=small), checker=check),
        replace(call(answers, *tests * 7, limits=small), checker=check),
    ]
    before = workers()
    with Sandbox(SandboxConfig(workers=1)) as sandbox:
        verdicts = [report.verdict for report in run_all(sandbox, jobs)]
        held_mb = max(held(pid) for pid in workers() if pid not in before) >> 20
    assert verdicts == [Verdict.TLE, Verdict.WA, Verdict.OLE, Verdict.OLE, Verdict.AC]
    assert held_mb < limits.memory_mb + 100


def test_captured_output_counts_as_output(level: Sandbox) -> None:
    capture = (
        "import io, contextlib\n    with contextlib.redirect_stdout(io.StringIO()) as text:\n"
        "        candidate(MB)\n"
        "    assert set(text.getvalue()) == {'x'}"
    )
    source = "def f(mb):\n    print(end='x' * int(mb * 2**20))"
    ok, much = (
        asserting(source, capture.replace("MB", "0.03")),
        asserting(source, *[capture.replace("MB", "0.03")] * 3),
    )
    assert [report.verdict for report in run_all(level, [ok, much])] == [Verdict.AC, Verdict.OLE]


OWNER = """
import json, sys
from sandbox.sandbox import Sandbox, SandboxConfig
from sandbox.protocol import Job, Limits, StdioTest
isolation, source = json.loads(sys.argv[1])
job = Job('', source, 'stdio', (StdioTest('', ''),), limits=Limits(wall_s=60.0, cpu_s=60.0))
with Sandbox(SandboxConfig(workers=1, isolation=isolation)) as s:
    print('up', flush=True)
    list(s.run([job] * 4))
"""
STUBBORN = {
    "a flood of messages": (
        "import os\nif os.fork() == 0:\n    while True: os.write(4, bytes(65536))\n"
        "while True: os.write(1, b'')"
    ),
    "a flood of refused calls": (
        "import ctypes, os\nfor _ in range(9):\n    try: os.fork()\n    except OSError: pass\n"
        "while True: ctypes.CDLL(None).ptrace(0, 0, 0, 0)"
    ),
    "processes whose first thread has left": (
        f"{LEADER_LEAVES}for _ in range(20):\n    os.fork() or leave(lambda: time.sleep(60))\n"
        "time.sleep(60)"
    ),
    "deep folders": (
        "import os\nwhile True:\n    try: os.mkdir('d'), os.chdir('d')\n    except OSError: pass"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", STUBBORN)
@pytest.mark.parametrize("isolation", ["root", "bare"])
def test_a_killed_owner_leaves_no_process_and_no_folder(
    isolation: Literal["root", "userns", "bare"], what: str
) -> None:
    scratch = Path(tempfile.mkdtemp(dir="/dev/shm"))
    environment = os.environ | {"PYTHONPATH": str(Path.cwd()), "TMPDIR": str(scratch)}
    arguments = json.dumps([isolation, STUBBORN[what]])
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout
    assert owner.stderr
    if owner.stdout.readline() != "up\n":
        pytest.skip(owner.stderr.read().splitlines()[-1])
    with contextlib.suppress(subprocess.TimeoutExpired):
        owner.wait(0.5)
    started = psutil.Process(owner.pid).children(recursive=True)
    owner.kill()
    owner.communicate()
    # takes 2 s on an idle machine
    assert len(started) >= 3
    assert not psutil.wait_procs(started, timeout=10)[1]
    sweep(scratch)
    scratch.rmdir()
