"""Programs about which the kernel reports unusual things, or that return unusual numbers.

Each gets an ordinary verdict, and no worker ends because of it.
"""

from __future__ import annotations

import pytest

from sandbox.protocol import CallTest
from sandbox.sandbox import Sandbox, run_all
from tests.sandbox.jobs import call

SYSTEM = "import ctypes, os, signal, mmap, time\nlibc = ctypes.CDLL(None)\n"
ODD = {
    "a path beyond all addresses": "libc.syscall(2, ctypes.c_ulong(2**63), 0)",
    "a program beyond all addresses": "libc.syscall(59, ctypes.c_ulong(2**63), 0, 0)",
    "flags beyond all addresses": "libc.syscall(437, -100, b'x', ctypes.c_ulong(2**64 - 8), 24)",
    "a descriptor that names itself": (
        "a = os.open('.', 0)\n"
        "os.dup2(os.open(f'/proc/self/fd/{a}', os.O_PATH | os.O_NOFOLLOW), a)\n"
        "libc.open(f'/proc/self/fd/{a}/x'.encode(), 0)"
    ),
    "a question that a signal ends": (
        "signal.signal(signal.SIGALRM, lambda *_: None)\n"
        "signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)\n"
        "until = time.time() + 0.5\nwhile time.time() < until: libc.socket(2, 2, 0)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)"
    ),
    "a mapped file with the end of a line in its name": (
        "handle = os.open('x\\r', os.O_RDWR | os.O_CREAT)\nos.ftruncate(handle, 4096)\n"
        "held = mmap.mmap(handle, 4096)\nos.unlink('x\\r')\ntime.sleep(0.2)"
    ),
    "a process with lines in its name": "libc.prctl(15, b'a\\x0bb: c\\r')\nos.kill(os.getpid(), 0)",
}


def test_unusual_programs_are_judged_normally(level: Sandbox) -> None:
    one = (CallTest((), {}, 1),)
    jobs = [call(f"{SYSTEM}{source}\ndef f(): return 1", *one) for source in ODD.values()]
    reports = run_all(level, [*jobs, call("def f(): return 1", *one)])
    verdicts = dict(zip([*ODD, "the next one"], [each.verdict for each in reports], strict=True))
    assert set(verdicts.values()) == {"AC"}, verdicts


def test_a_file_named_like_a_library_hides_no_socket(level: Sandbox) -> None:
    name = "x\\x0b0-7fffffffffff /libuuid.so"
    source = (
        f"{SYSTEM}os.makedirs(os.path.dirname('{name}'), exist_ok=True)\n"
        f"held = open('{name}', 'w+b')\nheld.write(bytes(4096))\nheld.flush()\n"
    )
    source += "mapped = mmap.mmap(held.fileno(), 4096)\nlibc.socket(2, 2, 0)\ndef f(): return 1"
    [report] = run_all(level, [call(source, CallTest((), {}, 1))])
    assert report.tried
    assert report.tried["socket"] == 1


@pytest.mark.parametrize(
    ("source", "want"),
    [
        ("def f(): return complex(1.7e308, 1.7e308)", 1.5),
        ("from decimal import Decimal\ndef f(): return Decimal('1e-4990')", 1.5),
        ("from fractions import Fraction\ndef f(): return Fraction(10**4000, 3)", 1.5),
    ],
)
def test_no_unusual_number_breaks_the_comparison(
    sandbox: Sandbox, source: str, want: float
) -> None:
    [report] = run_all(sandbox, [call(source, CallTest((), {}, want), tolerance=1e-6)])
    assert str(report.verdict) == "WA"
