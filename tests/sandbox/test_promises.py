"""The limits that each isolation level guarantees, with a cgroup and without one.

There is one test for each line of the table in docs/explanation/sandbox.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox.isolation import cgroups
from sandbox.protocol import Limits
from sandbox.worker.slot import LevelRefused
from sandbox.worker_process import Worker
from tests.sandbox.jobs import stdio

Judge = Callable[..., dict[str, Any]]
LIMITS = Limits(wall_s=20.0, cpu_s=2.0, memory_mb=256, output_kb=1024, processes=64)
BURN = (
    "import os, time, signal\ndef burn(s):\n    t = time.process_time()\n"
    "    while time.process_time() - t < s: pass\n"
)
HOLD = "import os, time, mmap, threading\n"


@pytest.fixture(
    scope="module",
    params=[(level, counted) for level in ("root", "userns", "bare") for counted in (True, False)],
    ids=str,
)
def level(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker at each isolation level, with a cgroup for accounting and without one.

    Skipped, with the reason, if the machine refuses the level.
    """
    level, counted = request.param
    with pytest.MonkeyPatch.context() as patch:
        if not counted:
            patch.setattr(cgroups, "create", lambda *_: None)
        try:
            worker = Worker(level, {}, os.pidfd_open(os.getpid()))
        except LevelRefused as refused:
            pytest.skip(str(refused))
        if counted and "cgroup" not in worker.isolation:
            worker.close()
            pytest.skip("no cgroup can be written here")
        yield worker
        worker.close()


@pytest.fixture
def judge(level: Worker) -> Judge:
    return lambda source, stdin="", limits=LIMITS: level.judge(
        json.loads(stdio(source, stdin, "yes", limits=limits).payload)
    )


UNCOUNTED = {
    "a child that is reaped by itself": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n",
    "by the other way to say so": (
        "import ctypes\nact = (ctypes.c_ulong * 20)()\nact[17] = 2\n"
        "ctypes.CDLL(None).sigaction(17, act, None)\n"
    ),
    "a child that is waited for": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", UNCOUNTED)
def test_cpu_time_of_children_is_counted(judge: Judge, way: str) -> None:
    child = (
        "for _ in range(COUNT):\n    r, w = os.pipe()\n    if not os.fork():\n"
        "        burn(SECONDS)\n        os.write(w, b'x')\n        os._exit(0)\n"
    )
    child += "    os.close(w)\n    os.read(r, 1)\n    time.sleep(0.02)\nprint('yes')"
    source = BURN + UNCOUNTED[way] + child
    report = judge(source.replace("COUNT", "2").replace("SECONDS", "0.1"))
    assert report["verdict"] == "AC"
    assert 0.2 <= report["cpu_s"] < 1.0
    assert (
        judge(
            source.replace("COUNT", "3").replace("SECONDS", "0.2"),
            limits=Limits(wall_s=20.0, cpu_s=0.3),
        )["verdict"]
        == "TLE"
    )


MEMORY = {
    "children": (
        "for _ in range(6):\n    if not os.fork():\n        x = bytearray(b'x') * (200 << 20)\n"
        "        time.sleep(9)\ntime.sleep(9)"
    ),
    "threads whose first has ended": (
        "import ctypes\ndef work():\n    time.sleep(0.1)\n    x = bytearray(b'x') * (600 << 20)\n"
        "    time.sleep(9)\n"
        "threading.Thread(target=work).start()\nctypes.CDLL(None).syscall(60, 0)"
    ),
    "somebody who hides": (
        "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nfor _ in range(3):\n"
        "    if not os.fork():\n"
        "        x = bytearray(b'x') * (200 << 20)\n        time.sleep(9)\ntime.sleep(9)\n"
        "print('yes')"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("held_by", MEMORY)
def test_the_memory_limit_applies_to_the_sum(judge: Judge, held_by: str) -> None:
    assert judge(HOLD + MEMORY[held_by])["verdict"] == "MLE"


@pytest.mark.slow
def test_memory_shared_by_children_is_counted_once(judge: Judge) -> None:
    source = (
        "x = bytearray(b'x') * (150 << 20)\nfor _ in range(4):\n    if not os.fork():\n"
        "        time.sleep(0.3)\n        os._exit(0)\n"
    )
    assert judge(HOLD + source + "for _ in range(4): os.wait()\nprint('yes')")["verdict"] == "AC"


UNMAPPED = {
    "files in memory": (
        "held = []\nfor _ in range(6):\n    held.append(os.memfd_create('m'))\n"
        "    for _ in range(60): os.write(held[-1], bytes(1 << 20))\n"
    ),
    "what a child wrote": (
        "held = []\nfor _ in range(3):\n    held.append(mmap.mmap(-1, 240 << 20))\n"
        "    if not os.fork():\n"
        "        for at in range(0, 240 << 20, 4096): held[-1][at] = 1\n        os._exit(0)\n"
        "    os.wait()\n"
    ),
    "the same, by a device": (
        "held = []\nfor _ in range(3):\n"
        "    held.append(mmap.mmap(os.open('/dev/zero', 2), 240 << 20))\n    if not os.fork():\n"
        "        for at in range(0, 240 << 20, 4096): held[-1][at] = 1\n        os._exit(0)\n"
        "    os.wait()\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", UNMAPPED)
def test_unmapped_memory_is_limited(judge: Judge, what: str) -> None:
    assert judge(HOLD + UNMAPPED[what] + "print('yes')")["verdict"] in ("MLE", "RE")


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        "if not os.fork(): time.sleep(30)",
        "threading.Thread(target=time.sleep, args=(30,), daemon=True).start()",
    ],
    ids=["forks", "threads"],
)
def test_processes_and_threads_are_limited_together(judge: Judge, more: str) -> None:
    source = (
        f"started = 0\ntry:\n    for _ in range(150):\n        {more}\n        started += 1\n"
        "except (OSError, RuntimeError): pass\n"
    )
    report = judge(
        HOLD + source + "print('yes' if 60 <= started <= 70 else started, flush=True)\nos._exit(0)"
    )
    assert report["verdict"] == "AC", report


HONEST = {
    "standard streams by name": (
        "text = open('/dev/stdin').read()\nopen('/dev/stderr', 'w').write('x')\n"
        "open('/dev/stdout', 'w').write(text)"
    ),
    "deep recursion in a thread": (
        "import sys, threading\nthreading.stack_size(512 << 20)\nsys.setrecursionlimit(10**6)\n"
        "def deep(n): return 0 if n == 0 else 1 + deep(n - 1)\n"
        "threading.Thread(target=lambda: print('yes' if deep(90000) else '')).start()"
    ),
    "a pool": (
        "from multiprocessing import Pool\n"
        "with Pool(2) as pool: print('yes' if pool.map(abs, [-1, 2]) == [1, 2] else '')"
    ),
    "a queue, a lock, a value": (
        "import multiprocessing as mp\nq, lock, v = mp.Queue(), mp.Lock(), mp.Value('i', 0)\n"
        "def work():\n"
        "    with lock: v.value += 1\n    q.put(1)\n"
        "ps = [mp.Process(target=work) for _ in range(4)]\nfor p in ps: p.start()\n"
        "for p in ps: q.get()\nfor p in ps: p.join()\n"
        "print('yes' if v.value == 4 else v.value)"
    ),
    "an executor": (
        "from concurrent.futures import ProcessPoolExecutor\n"
        "with ProcessPoolExecutor(2) as pool: print('yes' if sum(pool.map(abs, [-1, 2])) == 3 "
        "else '')"
    ),
    "children that nobody waits for": (
        "import os, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if not os.fork(): os._exit(0)\nprint('yes')"
    ),
    "a shell": (
        "import subprocess\nprint(subprocess.run('x=$(echo ye | cat); echo ${x}s', shell=True, "
        "capture_output=True, text=True).stdout)"
    ),
    "shared memory": (
        "import mmap, os\nm = mmap.mmap(-1, 1 << 20)\nif not os.fork():\n    m[:3] = b'yes'\n"
        "    os._exit(0)\n"
        "os.wait()\nprint(m[:3].decode())"
    ),
}


NEEDS_SEMAPHORES = ("a pool", "a queue, a lock, a value", "an executor")


@pytest.mark.parametrize("what", HONEST)
def test_an_honest_program_passes_where_the_level_has_what_it_needs(
    judge: Judge, level: Worker, what: str
) -> None:
    report = judge(HONEST[what], "yes")
    if level.level == "bare" and what in NEEDS_SEMAPHORES:
        assert report["verdict"] == "RE", report
        assert "(bare) has no semaphores" in report["detail"], report
    else:
        assert report["verdict"] == "AC", report
