"""The processes of one attempt: the program's, and the judge's where a judge runs the tests."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sandbox.limits import Limits
from sandbox.verdict import Verdict
from sandbox.wire import frame
from sandbox.worker.in_place import is_about_effects, sees_changes
from sandbox.worker.messages import Result
from sandbox.worker.slot import Slot, sealed_file
from sandbox.worker.watch import Watch

# Limits of the process that runs the tests. Its time is limited by the program's clock.
JUDGE_LIMITS = Limits(memory_mb=2048)
# CPU time of each program's process that the sandbox itself uses for the set-up, at most
SET_UP_CPU_S = 0.5


class AttemptProcesses:
    """Start, watch and account for the processes of one job."""

    def __init__(
        self,
        slots: list[Slot],
        job: dict[str, Any],
        limits: Limits,
        owner: int,
        judges: Callable[[dict[str, Any]], Slot],
    ) -> None:
        self.slots, self.job, self.limits, self.owner, self.judges = (
            slots,
            job,
            limits,
            owner,
            judges,
        )
        self.slot = slots[0]
        self.runs = len(job["tests"])  # parts of the job that have the limits of one test each
        self.begin()

    def begin(self) -> None:
        """Begin to count. What ran before, such as a compiler, does not count."""
        self.cpu_s = 0.0
        self.peak_bytes = 0
        self._kills = self.slot.cgroup.oom_kills() if self.slot.cgroup else 0
        self.slot.limit(self.limits)

    def ran_out_of_memory(self) -> bool:
        return self.slot.cgroup is not None and self.slot.cgroup.oom_kills() > self._kills

    def within_limits(self, results: list[Result]) -> list[Result]:
        """Return the results after a check of the limits that all processes have together."""
        why = None
        if self.ran_out_of_memory() and all(result[0] != Verdict.MLE for result in results):
            why = Verdict.MLE, "a process of the program was killed for memory"
        elif self.cpu_s > self._most_cpu_s() + SET_UP_CPU_S and all(
            result[0] == Verdict.AC for result in results
        ):
            why = Verdict.TLE, "the processes of the program took too much CPU together"
        return [*results[:-1], [*why, results[-1][2]]] if why else results

    def _most_cpu_s(self) -> float:
        each = self.limits.cpu_s * self.runs
        return each if self.limits.total_cpu_s is None else min(each, self.limits.total_cpu_s)

    def header(self) -> bytes:
        """Return what the program's process needs before the tests: entry point and source.

        A function to call may also be a method of a class `Solution`, and the reverse, as in the
        harnesses of APPS and LiveCodeBench.
        """
        entry, method = self.job["entry"] or "", "Solution()."
        if self.job["style"] == "call":
            other = entry.removeprefix(method) if entry.startswith(method) else method + entry
            entry += f"\n{other}"
        return b"".join(
            frame(text.encode("utf-8", "surrogatepass")) for text in (entry, self.job["source"])
        )

    @contextlib.contextmanager
    def started(
        self,
        style: str,
        request: bytes,
        tests: int,
        *,
        stdin: bytes = b"",
        limits: Limits | None = None,
        answers: int | None = None,
        methods: int = 0,
        more: Sequence[int] = (),
    ) -> Iterator[Watch]:
        """Start a program's process; nothing of it is left afterwards. Raises Broken if it cannot
        be set up.

        answers: the number of calls it answers, if that is all it does.
        methods: the number of unittest methods that it may report.
        more: further descriptors of the process.
        """
        results, channel = os.pipe2(os.O_CLOEXEC)
        gate_inner, gate = os.pipe2(os.O_CLOEXEC)
        out, out_inner = os.pipe2(os.O_CLOEXEC)
        separate = style in ("stdio", "compile") and not self.job["output_bytes"]
        err, err_inner = os.pipe2(os.O_CLOEXEC) if separate else (None, out_inner)
        for written in (out_inner, err_inner):
            os.fchmod(written, 0o622)  # a program with another uid may reopen it as /dev/stdout
        stdin_file = (
            sealed_file(stdin) if stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        )
        limits = limits or self.limits
        # 2: the messages "set up" and "loaded"
        messages = 2 + methods + (1 if answers is None else answers)
        watch = Watch(
            self.slots,
            results,
            [out] if err is None else [out, err],
            limits,
            owner=self.owner,
            speaker="program",
            messages=messages,
            gate=gate,
        )
        self.slot.start(
            "program",
            style,
            limits,
            tests,
            [stdin_file, out_inner, err_inner, sealed_file(request), channel, gate_inner, *more],
        )
        yield from self._until_the_end(watch)

    @contextlib.contextmanager
    def judged(self) -> Iterator[Watch]:
        """Start a judge's process and a program's process, connected by a socket. What earlier
        processes of this attempt used does not count.
        """
        judges = self.judges(self.job)
        judges.limit(JUDGE_LIMITS)
        self.slots.append(judges)
        self.cpu_s = 0.0
        results, channel = os.pipe2(os.O_CLOEXEC)
        gate_inner, gate = os.pipe2(os.O_CLOEXEC)
        out, out_inner = os.pipe2(os.O_CLOEXEC)
        asks, answers = socket.socketpair()
        answers_kept = answers.dup()
        watch = Watch(
            self.slots,
            results,
            [out],
            self.limits,
            owner=self.owner,
            speaker="judge",
            messages=2 + len(self.job["tests"]),
            gate=gate,
        )
        # The judge must notice the end of the program even if a child of the program holds the
        # socket.
        watch.on_exit["program"] = lambda: answers_kept.shutdown(socket.SHUT_RDWR)
        texts = [test["source"] for test in self.job["tests"]]
        in_place = [self.job["in_place"] or sees_changes(text, self.job["entry"]) for text in texts]
        none_shows = [is_about_effects(text, self.job["entry"]) for text in texts]
        tests = {
            "do": "assert", "entry": self.job["entry"], "prompt": self.job["prompt"],
            "tests": texts, "in_place": in_place, "none_shows": none_shows,
            "output_kb": self.limits.output_kb,
        }  # fmt: skip
        judging = replace(JUDGE_LIMITS, cpu_s=self.limits.wall_s)
        nothing = [os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)]
        request = sealed_file(frame(json.dumps(tests).encode()))
        self.slots[1].start(
            "judge",
            "assert",
            judging,
            len(self.job["tests"]),
            [*nothing * 3, request, channel, asks.detach()],
        )
        stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        program = [
            stdin,
            out_inner,
            out_inner,
            sealed_file(self.header()),
            answers.detach(),
            gate_inner,
        ]
        self.slot.start("program", "assert", self.limits, len(self.job["tests"]), program)
        with answers_kept:
            yield from self._until_the_end(watch)

    @contextlib.contextmanager
    def judge_alone(
        self, header: dict[str, Any], body: Iterable[bytes], tests: int
    ) -> Iterator[Watch]:
        """Start a judge's process alone, to run source of the problem (a checker, a test)."""
        results, channel = os.pipe2(os.O_CLOEXEC)
        out, out_inner = os.pipe2(os.O_CLOEXEC)
        judging = replace(JUDGE_LIMITS, wall_s=self.limits.wall_s, cpu_s=self.limits.wall_s)
        judges = self.judges(self.job)
        judges.limit(JUDGE_LIMITS)
        watch = Watch(
            [judges], results, [out], judging, owner=self.owner, speaker="judge", messages=1 + tests
        )
        request = sealed_file(frame(json.dumps(header).encode()), more=body)
        stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        judges.start(
            "judge", "assert", judging, tests, [stdin, out_inner, out_inner, request, channel]
        )
        watch.await_set_up()
        try:
            yield watch
        finally:
            judges.end()
            judges.ended()
            watch.close()

    def _until_the_end(self, watch: Watch) -> Iterator[Watch]:
        watch.await_set_up()
        try:
            yield watch
        finally:
            for slot in self.slots:
                if slot.denied:
                    slot.denied.call_counter.settle()
                slot.end()
            used = [slot.ended() for slot in self.slots]
            self.cpu_s += used[0]
            self.peak_bytes = max(self.peak_bytes, self._peak(watch))
            watch.close()

    def _peak(self, watch: Watch) -> int:
        together = self.slot.cgroup.peak_bytes() if self.slot.cgroup else None
        return (
            max(watch.peak, self.slot.accounts.peak_bytes)
            if together is None
            else max(0, together - self.slot.base_bytes)
        )
