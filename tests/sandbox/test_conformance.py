"""Properties that hold on every backend: docker and ray only run the same judge elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends import Kind
from sandbox.protocol import CallTest, Job, Limits, Report, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all
from tests.hostile.test_own_attacks import ATTACKS, calling
from tests.sandbox.engines import kill_a_worker, place, workers_here
from tests.sandbox.jobs import asserting, call, stdio

KINDS = [
    "local",
    pytest.param("docker", marks=pytest.mark.slow),
    pytest.param("ray", marks=pytest.mark.slow),
]
LIMITS = Limits(wall_s=3.0, cpu_s=3.0, memory_mb=128, output_kb=64)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


@pytest.fixture(scope="module")
def others() -> set[int]:
    """Return the workers of sandboxes that other tests keep open."""
    return workers_here()


@pytest.fixture(scope="module")
def there(kind: Kind, others: set[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with place(kind, tmp_path_factory.mktemp(kind)) as resource:
        yield resource


@pytest.fixture(scope="module")
def sandbox(kind: Kind, there: Any) -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2, backend=kind)) as opened:
        yield opened


def judged(sandbox: Sandbox, job: Job) -> Report:
    return run_all(sandbox, [job])[0]


ADD = "def f(a, b):\n    return a + b"
VERDICTS = {
    "call, right": (call(ADD), "AC"),
    "call, wrong": (call("def f(a, b):\n    return a - b"), "WA"),
    "call, raises": (call("def f(a, b):\n    return a / 0"), "RE"),
    "call, no Python": (call("def f(a, b:"), "CE"),
    "call, numpy": (
        call("import numpy\ndef f(a, b):\n    return int(numpy.array([a, b]).sum())"),
        "AC",
    ),
    "assert, right": (
        asserting(ADD, "assert candidate(2, 3) == 5", "assert candidate(0, 0) == 0"),
        "AC",
    ),
    "assert, wrong": (asserting(ADD, "assert candidate(2, 3) == 6"), "WA"),
    "stdio, right": (stdio("print(int(input()) * 2)", "21\n", "42\n"), "AC"),
    "stdio, by its devices": (
        stdio("open('/dev/stdout', 'w').write(open('/dev/stdin').read())", "21\n", "21\n"),
        "AC",
    ),
    "stdio, wrong": (stdio("print(41)", "21\n", "42\n"), "WA"),
    "stdio, leaves early": (
        stdio("import os\nprint(42, flush=True)\nos._exit(3)", "21\n", "42\n"),
        "RE",
    ),
    "sleeps": (call("import time\ntime.sleep(60)", limits=Limits(wall_s=0.5)), "TLE"),
    "burns": (call("while True: pass", limits=Limits(wall_s=10.0, cpu_s=0.5)), "TLE"),
    "burns little by little": (
        call(
            (
                "import time\ndef f():\n    until = time.process_time() + 0.3\n"
                "    while time.process_time() < until: pass"
            ),
            *[CallTest()] * 5,
            limits=Limits(wall_s=30.0, cpu_s=9.0, total_cpu_s=0.5),
        ),
        "TLE",
    ),
    "takes memory": (call("x = bytearray(2**29)\ndef f(a, b): return 5", limits=LIMITS), "MLE"),
    "floods": (stdio("print('x' * 2**20)", "", "", limits=LIMITS), "OLE"),
}


@pytest.mark.parametrize("what", VERDICTS)
def test_the_verdict_is_the_same_on_every_backend(sandbox: Sandbox, what: str) -> None:
    job, verdict = VERDICTS[what]
    report = judged(sandbox, job)
    assert report.verdict == verdict, report


def test_each_job_has_exactly_one_report(sandbox: Sandbox) -> None:
    jobs = [
        Job(str(i), f"def f(n):\n    return n + {i % 2}", "call", (CallTest((i,), {}, i),), "f")
        for i in range(20)
    ]
    reports = list(sandbox.run(jobs))
    assert sorted(int(report.job_id) for report in reports) == list(range(20))
    assert {int(report.job_id) % 2: report.verdict for report in reports} == {
        0: Verdict.AC,
        1: Verdict.WA,
    }


def test_reports_name_the_backend_and_the_isolation_level(sandbox: Sandbox, kind: Kind) -> None:
    assert judged(sandbox, call(ADD)).isolation == sandbox.describe()
    assert kind == "local" or sandbox.describe().startswith(f"{kind}: ")
    assert "seccomp" in sandbox.describe()


def test_refused_calls_are_counted_on_every_backend(sandbox: Sandbox) -> None:
    report = judged(sandbox, call(f"import ctypes\nctypes.CDLL(None).unshare(0x10000000)\n{ADD}"))
    assert (report.verdict, report.denied) == (Verdict.AC, {"unshare": 1})
    assert judged(sandbox, call(ADD)).denied == {}


@pytest.mark.slow
def test_a_job_whose_worker_is_killed_is_judged_by_another(
    sandbox: Sandbox, kind: Kind, others: set[int]
) -> None:
    reports: list[Report] = []
    jobs = [call(f"import time\ntime.sleep(0.5)\n{ADD}") for _ in range(6)]
    running = threading.Thread(target=lambda: reports.extend(run_all(sandbox, jobs)))
    running.start()
    time.sleep(0.3)
    assert kill_a_worker(kind, others)
    running.join()
    assert [report.verdict for report in reports] == [Verdict.AC] * 6


SAMPLE = (
    "answers that were never asked for",
    "death before the first word",
    "its group, its session, everybody",
    "all process slots",
    "the first process out of time",
    "all space for files",
    "expected values in memory",
)


@pytest.mark.parametrize("what", SAMPLE)
def test_an_attack_is_neither_accepted_nor_a_sandbox_failure(sandbox: Sandbox, what: str) -> None:
    reports = run_all(sandbox, [calling(ATTACKS[what]), call(ADD)])
    assert reports[0].verdict not in (Verdict.AC, Verdict.INFRA), reports[0]
    assert reports[1].verdict is Verdict.AC


def test_files_and_network_of_the_owner_are_out_of_reach(sandbox: Sandbox, tmp_path: Path) -> None:
    (secret := tmp_path / "secret").write_text("yes")
    for source in (
        f"print(open({str(secret)!r}).read())",
        "import socket\nsocket.socket()\nprint('yes')",
    ):
        assert judged(sandbox, stdio(source, "", "yes")).verdict is Verdict.RE
