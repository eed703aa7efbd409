"""Workers, zygotes and owners are killed.

No job is lost, none is reported twice, and nothing stays behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from sandbox.backends.local import LocalBackend, LocalChannel
from sandbox.isolation import cgroups, process_tree
from sandbox.isolation.process_tree import children
from sandbox.protocol import Job, Report, StdioTest, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, SandboxError, run_all
from tests.sandbox.jobs import QUICK, call
from tests.sandbox.left import slot_cgroups

ADD = "def f(a, b):\n    return a + b"
SLOW = "import time\ntime.sleep(0.3)\ndef f(a, b):\n    return a + b"


# processes of sandboxes that other tests keep open at the same time
OTHERS: set[int] = set()


@pytest.fixture(autouse=True)
def only_our_own() -> None:
    OTHERS.clear()
    OTHERS.update(process.pid for process in psutil.Process().children(recursive=True))


def below(pid: int) -> list[psutil.Process]:
    return [
        process
        for process in psutil.Process(pid).children(recursive=True)
        if process.pid not in OTHERS
    ]


def called(name: str, pid: int | None = None) -> list[psutil.Process]:
    """Return the worker or zygote processes below this process or `pid`.

    name: "worker_process.py" for the workers, "zygote.py" for their zygotes with the outer
    halves. Programs are never included: they are children of a zygote.
    """
    processes, generation = [], [pid or os.getpid()]
    for _ in range(3):
        generation = [child for parent in generation for child in children(parent)]
        for pid in set(generation) - OTHERS:
            # a process that has ended says nothing about the others
            with contextlib.suppress(psutil.Error):
                if name in " ".join((process := psutil.Process(pid)).cmdline()):
                    processes.append(process)
    return processes


def gone(processes: list[psutil.Process], within_s: float = 20.0) -> bool:
    return not psutil.wait_procs(processes, timeout=within_s)[1]


class RecordingChannel(LocalChannel):
    """A real worker that records which thread sent it which job."""

    sent: ClassVar[list[tuple[str, str, int]]] = []  # job, thread, pid of the worker

    def send(self, payload: bytes, timeout_s: float) -> None:
        # send first: a worker that is killed before it receives the job says nothing about the job
        super().send(payload, timeout_s)
        self.sent.append((json.loads(payload)["id"], threading.current_thread().name, self.pid))


class RecordingBackend(LocalBackend):
    def open(self, number: int, of: int) -> LocalChannel:
        return RecordingChannel(self.isolation, self.packages)


@pytest.mark.slow
def test_a_job_of_a_killed_worker_goes_to_another_worker() -> None:
    jobs = [
        Job(name, f"import time\ntime.sleep({s})", "stdio", (StdioTest("", ""),), limits=QUICK)
        for name, s in (("long", 1.5), ("struck", 0.5))
    ]
    RecordingChannel.sent.clear()
    with Sandbox(SandboxConfig(workers=2), backend=RecordingBackend("auto", ())) as sandbox:
        reports: list[Report] = []
        running = threading.Thread(target=lambda: reports.extend(sandbox.run(jobs)))
        running.start()
        while len(RecordingChannel.sent) < 2:
            time.sleep(0.005)
        os.kill(
            next(pid for job, _, pid in RecordingChannel.sent if job == "struck"), signal.SIGKILL
        )
        running.join()
    first, second = [thread for job, thread, _ in RecordingChannel.sent if job == "struck"]
    assert first != second
    assert [report.verdict for report in reports] == [Verdict.AC] * 2


class Killer(threading.Thread):
    """Kills each process of this name as soon as it appears, up to `most` of them."""

    def __init__(self, name: str, most: int) -> None:
        super().__init__()
        self.victims, self.most, self.enough, self.killed = (
            name,
            most,
            threading.Event(),
            set[int](),
        )

    def run(self) -> None:
        while not self.enough.wait(0.002):
            for process in called(self.victims):
                if len(self.killed) < self.most and process.pid not in self.killed:
                    with contextlib.suppress(psutil.Error):
                        process.kill()
                        self.killed.add(process.pid)

    def __exit__(self, *_: object) -> None:
        self.enough.set()
        self.join()

    def __enter__(self) -> Killer:
        self.start()
        return self


@pytest.mark.parametrize(
    ("victim", "most"), [("zygote.py", 1), ("zygote.py", 3), ("worker_process.py", 2)]
)
def test_a_process_killed_while_starting_restarts_on_the_same_level(
    sandbox: Sandbox, victim: str, most: int
) -> None:
    with Killer(victim, most) as killer, Sandbox(SandboxConfig(workers=1)) as opened:
        assert opened.describe() == sandbox.describe()
    if len(killer.killed) < most:
        pytest.skip(
            "this machine is too busy to kill a process while it starts: "
            f"{len(killer.killed)} of {most}"
        )


@pytest.mark.parametrize("victim", ["zygote.py", "worker_process.py"])
def test_a_failed_start_raises_and_never_lowers_the_level(sandbox: Sandbox, victim: str) -> None:
    with Killer(victim, 100) as killer:
        try:
            with Sandbox(SandboxConfig(workers=1)) as opened:
                assert opened.describe() == sandbox.describe()
        except SandboxError as failure:
            assert victim != "zygote.py" or "signal 9" in str(failure)
        else:
            pytest.skip(
                "this machine is too busy to kill each process while it starts: "
                f"{len(killer.killed)} were"
            )


@pytest.mark.slow
def test_random_kills_neither_lose_nor_repeat_jobs() -> None:
    jobs = [
        Job(str(i), "print(input())", "stdio", (StdioTest(f"{i}\n", f"{i}\n"),), limits=QUICK)
        for i in range(150)
    ]
    draw = random.Random(0)
    with Sandbox(SandboxConfig(workers=2)) as sandbox:
        stop = threading.Event()

        def strike() -> None:
            for _ in range(20):  # a slow machine has no time for more
                if not stop.wait(0.15) and (processes := called(".py")):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        draw.choice(processes).kill()

        killer = threading.Thread(target=strike)
        killer.start()
        reports = list(sandbox.run(jobs))
        stop.set()
        killer.join()
        before = below(os.getpid())
    assert sorted(int(report.job_id) for report in reports) == list(range(150))
    assert {report.verdict for report in reports} <= {Verdict.AC, Verdict.INFRA}
    assert sum(report.verdict is Verdict.AC for report in reports) >= 140
    assert gone(before)


def test_a_job_whose_workers_always_die_is_infra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Sandbox(SandboxConfig(workers=1)) as sandbox:
        stop = threading.Event()

        def strike() -> None:
            while not stop.wait(0.02):
                for process in called("worker_process.py"):
                    with contextlib.suppress(psutil.Error):  # it was killed a moment ago
                        if time.time() - process.create_time() > 0.5:
                            process.kill()

        killer = threading.Thread(target=strike)
        killer.start()
        [report] = run_all(
            sandbox, [call("import time\ntime.sleep(60)", limits=replace(QUICK, wall_s=90.0))]
        )
        stop.set()
        killer.join()
    assert (report.verdict, report.total) == (Verdict.INFRA, 1), report


def test_a_fault_of_the_sandbox_is_the_report_of_one_job_alone() -> None:
    """A thread meets an exception that nobody foresaw: here the clock of a job is no number."""
    faulty = replace(QUICK, wall_s="soon")  # type: ignore[arg-type]
    with Sandbox(SandboxConfig(workers=1)) as sandbox:
        jobs = [call(ADD), call(ADD, limits=faulty), call(ADD)]
        reports = run_all(sandbox, jobs)
    assert [report.verdict for report in reports] == ["AC", "INFRA", "AC"]
    assert "the sandbox failed: TypeError" in reports[1].detail


def test_an_answer_that_cannot_be_read_is_the_report_of_its_own_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = Report.of_answer

    def overflowing(job: Job, answer: dict[str, Any]) -> Report:
        if job.source == ADD + "#":
            raise OverflowError("cannot convert float infinity to integer")
        return read(job, answer)

    monkeypatch.setattr(Report, "of_answer", overflowing)
    with Sandbox(SandboxConfig(workers=1)) as sandbox:
        reports = run_all(sandbox, [call(ADD), call(ADD + "#"), call(ADD), call(ADD)])
    assert [report.verdict for report in reports] == ["AC", "INFRA", "AC", "AC"]
    assert "OverflowError" in reports[1].detail


def test_an_idle_worker_death_costs_the_next_job_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandbox.sandbox.ATTEMPTS", 1)
    with Sandbox(SandboxConfig(workers=1)) as sandbox:
        for idle in called("worker_process.py"):
            idle.kill()
            while cgroups.alive(idle.pid):
                time.sleep(0.005)
        assert run_all(sandbox, [call(SLOW)])[0].verdict is Verdict.AC


def test_memory_of_an_earlier_slot_is_not_part_of_the_next() -> None:
    """A slot is replaced while a process of its last program still ends: the next limit would have
    that memory on top."""
    hold = "import sys\nx = input().encode() * (200 << 20)\nprint(flush=True)\ninput()"
    command = [sys.executable, "-S", "-c", hold]
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **piped) for _ in range(2)]  # type: ignore[call-overload]
    try:
        first, second = (cgroups.create(f"{os.getpid()}-0", each.pid) for each in processes)
        if first is None or second is None:
            pytest.skip("no cgroup can be written here")
        print("x", file=processes[0].stdin, flush=True)
        processes[0].stdout.readline()
        assert second.used_bytes() < 100 << 20 < 200 << 20 < first.used_bytes()
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    first.remove()
    second.remove()


def by_default() -> None:
    """Restore the default signal handling, as in a shell.

    A library imported by another test may have changed it.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


@pytest.mark.slow
def test_no_process_outlives_a_terminated_owner(tmp_path: Path) -> None:
    """One that is killed: tests/sandbox/test_lifetime.py."""
    script = tmp_path / "owner.py"
    script.write_text(
        "from sandbox.sandbox import Sandbox, SandboxConfig\n"
        "from sandbox.protocol import Job, Limits, StdioTest\nprint('up', flush=True)\n"
        "job = Job('', 'import os, time\\nos.fork()\\ntime.sleep(60)', 'stdio', (StdioTest('', "
        "''),), limits=Limits(wall_s=60.0))\n"
        "with Sandbox(SandboxConfig(workers=2)) as s:\n    list(s.run([job] * 4))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    owner = subprocess.Popen(
        [sys.executable, str(script)],
        env=environment,
        stdout=subprocess.PIPE,
        preexec_fn=by_default,
    )
    assert owner.stdout
    assert owner.stdout.readline() == b"up\n"
    while len(called("zygote.py", owner.pid)) < 4:
        assert owner.poll() is None, "it ended before it was killed"
        time.sleep(0.05)
    started = below(owner.pid)
    owner.terminate()
    owner.wait()
    owner.stdout.close()
    assert len(started) >= 6
    assert gone(started)


def test_closing_leaves_no_process_no_folder_and_no_cgroup() -> None:
    before = set(below(os.getpid()))
    with Sandbox(SandboxConfig(workers=2)) as sandbox:
        run_all(sandbox, [call("open('x', 'w').write('y')\ndef f(a, b):\n    return 5")] * 4)
        workers = [p.pid for p in below(os.getpid())]
    assert set(below(os.getpid())) == before
    assert workers
    assert not [path for path, pid in slot_cgroups().items() if pid in workers]
    assert not [
        path
        for path in Path("/tmp").glob("ratchet-scratch-*")
        if int(path.name.split("-")[2]) in workers
    ]


def test_many_threads_share_a_sandbox() -> None:
    with Sandbox(SandboxConfig(workers=2)) as sandbox:
        accepted: list[list[str]] = []

        def ask(number: int) -> None:
            jobs = [
                Job(
                    f"{number}.{i}",
                    "print(input())",
                    "stdio",
                    (StdioTest(f"{number}", f"{number}"),),
                    limits=QUICK,
                )
                for i in range(8)
            ]
            accepted.append(
                sorted(
                    report.job_id for report in sandbox.run(jobs) if report.verdict is Verdict.AC
                )
            )

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(accepted) == [sorted(f"{number}.{i}" for i in range(8)) for number in range(6)]


@pytest.mark.slow
def test_an_unfinished_run_blocks_no_other() -> None:
    RecordingChannel.sent.clear()
    with Sandbox(SandboxConfig(workers=2), backend=RecordingBackend("auto", ())) as sandbox:
        unfinished = sandbox.run([replace(call(SLOW), job_id="unfinished")] * 50)
        next(unfinished)
        unfinished.close()  # type: ignore[attr-defined]
        before = len(RecordingChannel.sent)
        assert run_all(sandbox, [call(SLOW)])[0].verdict is Verdict.AC
        assert [job for job, *_ in RecordingChannel.sent[before:]].count("unfinished") <= 2, (
            "only jobs that the workers had already taken"
        )


def test_a_closed_sandbox_raises() -> None:
    with pytest.raises(SandboxError, match="Sandbox"):
        list(Sandbox().run([]))


def test_importing_the_sandbox_imports_no_heavy_package() -> None:
    """Each worker imports it when it starts."""
    code = "import sys, sandbox.sandbox\nprint({'pydantic', 'numpy'} & set(sys.modules))"
    command = [sys.executable, "-S", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "set()\n"


def test_the_descendants_of_another_process_are_killed() -> None:
    parent = subprocess.Popen(["sh", "-c", "sleep 99 & sleep 99 & wait"])
    while len(children(parent.pid)) < 2:
        time.sleep(0.01)
    process_tree.kill_descendants(parent.pid)
    assert parent.wait(10) == 0
