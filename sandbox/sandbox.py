"""Entry point of the sandbox: a job queue, one thread per worker, exactly one report per job."""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from sandbox.backends import Backend, Channel, WorkerDied, backend_of
from sandbox.backends.local import IsolationError
from sandbox.config import SandboxConfig
from sandbox.cores import usable_cores
from sandbox.protocol import Invalid, Job, Report, TestResult, Verdict

ATTEMPTS = 2  # A job whose worker failed is retried once, on another worker.
STARTS = 3  # attempts to start a worker when the sandbox is opened
REOPEN_S = 1.0
PASS_ON_S = 0.01
# Jobs per worker that one `run` keeps queued: enough to keep each worker busy, few enough that the
# caller's iterable is read lazily.
AHEAD = 4


class SandboxError(RuntimeError):
    """The sandbox itself does not work."""


@dataclass
class _Run:
    """One call of `run`: where its reports go, and whether the caller still wants them."""

    reports: queue.SimpleQueue[tuple[_Task, Report]] = field(default_factory=queue.SimpleQueue)
    abandoned: bool = False


@dataclass
class _Task:
    job: Job
    payload: bytes
    run: _Run
    repeats: list[Report]  # reports of this job so far; one list shared by all its tasks
    attempts: int = 0
    failed_at: int | None = None  # number of the thread whose worker failed on this task


_Answer = tuple[_Task, bytes, str]  # a task, its worker's answer, and the worker's location


class Sandbox:
    """Runs jobs in workers. `run` may be called from several threads at once.

    Usage: `with Sandbox(config) as sandbox: for report in sandbox.run(jobs): ...`
    Entering raises IsolationError where the requested isolation is not available, and SandboxError
    where no worker starts.
    """

    def __init__(self, config: SandboxConfig | None = None, backend: Backend | None = None) -> None:
        self.config = config or SandboxConfig()
        self._backend = backend
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._isolation = ""
        self._closed = True
        self._lock = threading.Lock()
        self._without = 0  # threads whose worker failed and was not replaced yet

    @property
    def workers(self) -> int:
        return self.config.workers or (self._backend.workers if self._backend else usable_cores())

    def describe(self) -> str:
        """Return the isolation in force, e.g. "root: namespaces+uid+seccomp+rlimits+cgroup"."""
        self._require_open()
        return self._isolation

    def __enter__(self) -> Sandbox:
        if not self._closed:
            raise SandboxError("this sandbox is already open: create another one")
        self._backend = self._backend or backend_of(
            self.config.backend, self.config.isolation, self.config.packages
        )
        started: queue.SimpleQueue[str | Exception] = queue.SimpleQueue()
        self._closed = False
        self._threads = [
            threading.Thread(
                target=self._serve, args=(started, i), name=f"sandbox-{i}", daemon=True
            )
            for i in range(self.workers)
        ]
        for thread in self._threads:
            thread.start()
        levels = [started.get() for _ in self._threads]
        if failure := next((level for level in levels if isinstance(level, Exception)), None):
            self.close()
            raise failure
        if len(set(levels)) != 1:
            self.close()
            raise IsolationError(
                f"workers differ in isolation: {sorted(set(map(str, levels)))}: set one level"
            )
        self._isolation = str(levels[0])
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers. Queued jobs are not run."""
        if self._closed:
            return
        self._closed = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        if self._backend:
            self._backend.close()

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterator[Report]:
        """Yield one report per job, in order of completion. Equal jobs are each run; nothing is
        merged or cached.

        repeat: how often each job is run. Its one report is that of the first run that failed
            (INFRA aside) and holds the verdicts of all runs (`Report.flickers`).
        Raises ValueError for an invalid job (a test of another style, an argument that is not plain
        data) and names it.
        """
        self._require_open()
        if repeat < 1:
            raise ValueError(f"`repeat` must be at least 1, got {repeat}")
        run, pending_runs = _Run(), 0
        most = AHEAD * len(self._threads)
        try:
            for job in jobs:
                try:
                    payload, repeats = job.payload, list[Report]()
                except Invalid as fault:
                    raise ValueError(f"job {job.job_id}: {fault}") from None
                for _ in range(repeat):
                    self._tasks.put(_Task(job, payload, run, repeats))
                pending_runs += repeat
                while pending_runs >= most or (pending_runs and not run.reports.empty()):
                    yield from self._next(run, repeat)
                    pending_runs -= 1
            while pending_runs:
                yield from self._next(run, repeat)
                pending_runs -= 1
        finally:
            run.abandoned = True

    def _next(self, run: _Run, repeat: int) -> Iterator[Report]:
        """Wait for one more task; yield the report of its job if that was the job's last task."""
        while True:
            try:
                task, report = run.reports.get(timeout=5.0)
                break
            except queue.Empty:
                self._require_open()
                if not any(thread.is_alive() for thread in self._threads):
                    raise SandboxError("no thread of the sandbox is left: open another") from None
        task.repeats.append(report)
        if len(task.repeats) == repeat:
            judged = [one for one in task.repeats if one.verdict is not Verdict.INFRA] or [report]
            worst = next((one for one in judged if one.verdict is not Verdict.AC), judged[0])
            yield (
                replace(worst, verdicts=tuple(one.verdict for one in task.repeats))
                if repeat > 1
                else report
            )

    def _require_open(self) -> None:
        if self._closed:
            raise SandboxError("this sandbox is not open: use `with Sandbox(config) as sandbox`")

    def _serve(self, started: queue.SimpleQueue[str | Exception], number: int) -> None:
        """Thread function: run tasks on one worker and replace the worker whenever it fails. A job
        on which it failed is left to the other threads, if one of them has a worker.
        """
        assert self._backend
        channel: Channel | None = None
        try:
            channel = self._start_first(number)
            started.put(channel.isolation)
        except Exception as error:
            started.put(error)
            return
        late: list[_Answer] = []
        while not self._closed:
            channel = channel or self._replace_when_possible(number)
            if (task := self._next_task(late)) is None:
                break
            if self._closed or task.run.abandoned:
                continue
            if task.failed_at == number and len(self._threads) - 1 > self._without:
                self._deliver(late)
                self._tasks.put(task)
                time.sleep(PASS_ON_S)
                continue
            try:
                channel = self._attempt(task, channel, number, late)
            except Exception as error:
                # A fault of the sandbox itself: this job gets a report, and this thread continues.
                traceback.print_exc()
                why = f"the sandbox failed: {type(error).__name__}: {error}"
                task.run.reports.put((task, self._failed(task.job, why)))
                if channel:
                    channel.close()
                channel = None
        if channel:
            channel.close()

    def _next_task(self, late: list[_Answer]) -> _Task | None:
        """Return the next task. Before waiting for one, deliver the late reports."""
        try:
            return self._tasks.get_nowait()
        except queue.Empty:
            self._deliver(late)
            return self._tasks.get()

    def _start_first(self, number: int) -> Channel:
        """Start the first worker. Raises IsolationError, or SandboxError if every start fails."""
        assert self._backend
        failure: Exception | None = None
        for _ in range(STARTS):
            try:
                return self._backend.open(number, self.workers)
            except (WorkerDied, OSError) as died:
                failure = died
        raise SandboxError(
            f"no worker started in {STARTS} attempts, the last failed with: {failure}"
        ) from failure

    def _replace(self, number: int) -> Channel:
        """Replace a failed worker. Raises IsolationError if the isolation is no longer the same."""
        assert self._backend
        channel = self._backend.open(number, self.workers)
        if channel.isolation != self._isolation:
            channel.close()
            raise IsolationError(
                f"a restarted worker has isolation {channel.isolation}, the earlier ones had "
                f"{self._isolation}"
            )
        return channel

    def _replace_when_possible(self, number: int) -> Channel | None:
        """Like `_replace`, but wait (a node may be gone) as long as other threads have workers."""
        with self._lock:
            self._without += 1
        try:
            while not self._closed:
                try:
                    return self._replace(number)
                except (WorkerDied, IsolationError, OSError):
                    if self._without >= len(self._threads):
                        # No thread has a worker: take a job, so that its report says why.
                        return None
                    time.sleep(REOPEN_S)
            return None
        finally:
            with self._lock:
                self._without -= 1

    def _attempt(
        self, task: _Task, channel: Channel | None, number: int, late: list[_Answer]
    ) -> Channel | None:
        """Run a task, now or later on another worker. Returns the worker to use next, or None if it
        failed.

        late: earlier answers of the worker. They are turned into reports while it is busy, so that
            it does not wait for that; the answer to this task is added.
        """
        task.attempts, task.failed_at = task.attempts + 1, number
        try:
            channel = self._send(task, channel, number)
            self._deliver(late)
            answer = channel.hear(task.job.longest_s)
            if answer.startswith(b'{"broken"'):
                raise WorkerDied(json.loads(answer)["broken"])
            late.append((task, answer, channel.where))
            return channel
        except (WorkerDied, IsolationError, OSError) as failure:
            if channel:
                channel.close()
            self._deliver(late)
            self._retry(task, str(failure))
            return None

    def _send(self, task: _Task, channel: Channel | None, number: int) -> Channel:
        """Send the task; return the worker that has it. A worker that died while idle is
        replaced.
        """
        if channel:
            try:
                channel.send(task.payload, task.job.longest_s)
                return channel
            except WorkerDied:
                channel.close()
        channel = self._replace(number)
        channel.send(task.payload, task.job.longest_s)
        return channel

    def _deliver(self, late: list[_Answer]) -> None:
        while late:
            task, answer, where = late.pop()
            try:
                fields = json.loads(answer)
                task.run.reports.put(
                    (
                        task,
                        Report.of_answer(
                            task.job, fields | {"isolation": where + fields["isolation"]}
                        ),
                    )
                )
            except Exception as failure:
                # Not an answer to the job: its worker is broken.
                self._retry(task, f"no answer: {type(failure).__name__}: {failure}")

    def _retry(self, task: _Task, failure: str) -> None:
        if task.attempts < ATTEMPTS:
            self._tasks.put(task)
        else:
            task.run.reports.put((task, self._failed(task.job, failure)))

    def _failed(self, job: Job, why: str) -> Report:
        rows = tuple(TestResult(Verdict.INFRA, why) for _ in job.tests)
        return Report(job.job_id, Verdict.INFRA, rows, isolation=self._isolation, detail=why)


class Runs(Protocol):
    """Anything that runs jobs as a sandbox does."""

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterable[Report]: ...


def run_all(sandbox: Runs, jobs: Iterable[Job], repeat: int = 1) -> list[Report]:
    """Return all reports in the order of the jobs, whatever their ids."""
    ordered = list(jobs)
    numbered = [replace(job, job_id=str(i)) for i, job in enumerate(ordered)]
    reports = {int(report.job_id): report for report in sandbox.run(numbered, repeat)}
    return [replace(reports[i], job_id=job.job_id) for i, job in enumerate(ordered)]


__all__ = ["Runs", "Sandbox", "SandboxConfig", "SandboxError", "run_all"]
