"""This project's own attacks, each aimed at one mechanism of the sandbox.

None of them may be accepted, and none may be reported as a failure of the sandbox.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.protocol import AssertTest, CallTest, Job, Limits, Report, StdioTest, Test, Verdict
from sandbox.sandbox import Sandbox, run_all

LIMITS = Limits(wall_s=1.0, cpu_s=0.5, memory_mb=128, output_kb=64)
WRITE = (
    "import os, struct\ndef say(text, fd=4):\n"
    "    os.write(fd, struct.pack('>I', len(text)) + text)\n"
)

# A splice from an empty socket holds the lock of the pipe that it writes to. The reader of the pipe
# waits in the kernel, where neither its clock nor SIGKILL reaches it.
HOLD = """
import os, socket, time
empty = socket.socketpair()
if not os.fork():
    os.write(1, b"x" * 99)
    os.{call}
time.sleep(0.05)
for _ in range(20):
    if not os.fork():
        os.write(1, b"y")
        os._exit(0)
time.sleep(9)
"""


def calling(source: str) -> Job:
    """Return a job in which f(i) must be 7 * i + 1 for five values in no particular order."""
    tests: tuple[Test, ...] = tuple(CallTest((i,), {}, 7 * i + 1) for i in (31, 4, 15, 92, 6))
    return Job("", source, "call", tests, "f", limits=LIMITS)


def asserting(source: str) -> Job:
    check = (
        "def check(candidate):\n    for i in (31, 4, 15, 92, 6):\n"
        "        assert candidate(i) == 7 * i + 1\n"
    )
    return Job("", source, "assert", (AssertTest(check),), "f", limits=LIMITS)


ATTACKS: dict[str, str] = {
    "answers that were never asked for": (
        WRITE + "for _ in range(99): say(b'R218')\ndef f(x): return 0"
    ),
    "a verdict in the judge's own form": (
        WRITE + "say(b'L')\nfor _ in range(9): say(b'V[0,\"AC\",\"\"]')\ndef f(x): return 0"
    ),
    "a failure of the set-up, claimed late": (
        WRITE + "say(b'U')\nsay(b'B broken tests')\ndef f(x): return 0"
    ),
    "a second compile error": WRITE + "say(b'L')\nsay(b'C')\nsay(b'S')\ndef f(x): return 0",
    "a frame that never ends": (
        WRITE + "os.write(4, b'\\xff\\xff\\xff\\xff' + b'x' * 1000)\ndef f(x): return 0"
    ),
    "a frame of length nothing": WRITE + "os.write(4, bytes(4 * 1000))\ndef f(x): return 0",
    "half a frame and silence": WRITE + "os.write(4, b'\\0\\0')\nimport time\ntime.sleep(60)",
    "JSON a thousand levels deep": (
        WRITE + "def f(x):\n    say(b'R' + b'[' * 900 + b']' * 900)\n    return 0"
    ),
    "keys a thousand levels deep": (
        WRITE
        + (
            "def f(x):\n    say(b'R{\"d\":[[' + b'{\"t\":[' * 400 + b']}' * 400 + b',1]]}')\n"
            "    return 0"
        )
    ),
    "tags that are none": WRITE + 'def f(x):\n    say(b\'R{"":[1],"sz":{}}\')\n    return 0',
    "a number with an exponent": WRITE + "def f(x):\n    say(b'R1e999999')\n    return 0",
    "an exception of the judge's": "def f(x):\n    raise type('ProgramGone', (BaseException,), {})",
    "an exception whose text is an attack": (
        "class E(Exception):\n    def __str__(self): raise SystemExit(0)\ndef f(x): raise E"
    ),
    "an exit status of the harness": "import os\nos._exit(70)",
    "death before the first word": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "its group, its session, everybody": "import os\nfor target in (0, -1): os.kill(target, 9)",
    "signals to the first process": (
        "import os\nfor n in range(1, 65):\n    try: os.kill(1, n)\n    except OSError: pass\n"
        "def f(x): return 0"
    ),
    "the first process out of time": (
        "import resource\nresource.prlimit(1, resource.RLIMIT_CPU, (0, 0))\ndef f(x): return 0"
    ),
    "every descriptor closed": "import os\nos.closerange(0, 1000)\ndef f(x): return 7 * x + 1",
    "the request, read again": "import os\nprint(os.pread(3, 9999, 0))\ndef f(x): return 0",
    "expected values in memory": (
        "import gc\ndef f(x):\n"
        "    a, b = int('218'), int('29')  # what it looks for must not be its own constant\n"
        "    return 7 * x + 1 if any(isinstance(o, (list, tuple)) and a in o and b in o "
        "for o in gc.get_objects()) else 0"
    ),
    "a child that answers for it": WRITE + "if os.fork():\n    os._exit(0)\ndef f(x): return 0",
    "memory until the zygote suffers": (
        "import os\nheld = []\nfor _ in range(40):\n    if not os.fork(): break\n"
        "while True: held.append(bytearray(b'x' * 2**22))"
    ),
    "all process slots": (
        "import os, time\ndef f(x):\n    try:\n        while True:\n"
        "            if not os.fork(): time.sleep(60)\n"
        "    except OSError: return 0"
    ),
    "all space for files": (
        "def f(x):\n    with open('big', 'wb', 0) as file:\n"
        "        while True: file.write(bytes(2**20))"
    ),
    "all names for files": (
        "def f(x):\n    i = 0\n    while True:\n        open(str(i), 'w').close()\n        i += 1"
    ),
    "a result of two million elements": "def f(x): return [[0] * 1000] * 2000",
    "a generator of the right answers": "def f(x): yield 7 * x + 1",
    "a frozen clock": (
        "import time\ntime.monotonic = time.time = lambda: 0\ndef f(x):\n    while True: pass"
    ),
    "source in another encoding": "# -*- coding: utf-7 -*-\n+AGQ-ef f(x): return 7 * x + 1",
}


@pytest.mark.parametrize("style", ["call", "assert"])
@pytest.mark.parametrize("what", ATTACKS)
def test_an_attack_is_neither_accepted_nor_a_sandbox_failure(
    sandbox: Sandbox, what: str, style: str
) -> None:
    report = run_all(sandbox, [{"call": calling, "assert": asserting}[style](ATTACKS[what])])[0]
    assert report.verdict not in (Verdict.AC, Verdict.INFRA), report


# an ample wall-clock limit: it may have to wait for an attack that runs at the same time
HONEST = replace(calling("def f(x): return 7 * x + 1"), limits=replace(LIMITS, wall_s=30.0))


def honest(report: Report) -> bool:
    return report.verdict is Verdict.AC


@pytest.mark.parametrize(
    "what",
    [
        "all process slots",
        "memory until the zygote suffers",
        "its group, its session, everybody",
        "all space for files",
    ],
)
def test_an_attack_does_not_affect_the_next_program(sandbox: Sandbox, what: str) -> None:
    reports = run_all(
        sandbox, [calling(ATTACKS[what]), HONEST, calling(ATTACKS[what]), HONEST, HONEST]
    )
    assert [honest(report) for report in reports] == [False, True, False, True, True]


@pytest.mark.slow
def test_busy_attackers_do_not_time_out_an_honest_program(sandbox: Sandbox) -> None:
    """Other programs that occupy every processor do not make an honest program time out."""
    burn = "import os\nfor _ in range(30):\n    if not os.fork(): break\nwhile True: pass"
    busy = Job(
        "",
        "x = sum(range(2_000_000))\nprint(x)",
        "stdio",
        (StdioTest("", "1999999000000"),),
        limits=Limits(wall_s=60.0, cpu_s=10.0),
    )
    reports = run_all(sandbox, [calling(burn), busy, calling(burn), busy])
    assert [honest(report) for report in reports] == [False, True, False, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    ["splice(empty[0].fileno(), 1, 2**31)", "sendfile(1, empty[0].fileno(), None, 9)"],
    ids=["splice", "sendfile"],
)
def test_no_program_can_hold_the_lock_of_a_pipe(sandbox: Sandbox, call: str) -> None:
    job = Job("", HOLD.format(call=call), "stdio", (StdioTest("", "7"),), limits=LIMITS)
    assert run_all(sandbox, [job])[0].verdict is Verdict.TLE


@pytest.mark.slow
def test_a_program_copies_a_file_without_sendfile(sandbox: Sandbox) -> None:
    source = (
        "import shutil\ndef f(x):\n    open('a', 'w').write(str(7 * x + 1))\n"
        "    shutil.copyfile('a', 'b')\n    return int(open('b').read())"
    )
    assert run_all(sandbox, [calling(source)])[0].verdict is Verdict.AC
