"""A program that takes too long runs again alone, and its verdict is not cached."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from evaluation.completions import Completion
from evaluation.judging.by_problem import by_problem
from evaluation.judging.judge import Verdicts, judge
from problems.schema import Problem
from sandbox.protocol import Job, Limits, Report
from sandbox.sandbox import Sandbox

ENDLESS = "def solve(x):\n    while True:\n        pass"


class Recording:
    """A sandbox that records how many jobs ran together."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.sizes = sandbox, list[int]()

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> Iterable[Report]:
        batch = list(jobs)
        self.sizes.append(len(batch))
        return self.sandbox.run(batch)


def test_a_late_program_is_judged_again_alone_and_not_cached(
    problems: list[Problem], sandbox: Sandbox, tmp_path: Path
) -> None:
    limits = Limits(wall_s=1.0, cpu_s=0.5, memory_mb=128, output_kb=64)
    harness = replace(by_problem("heldout", problems[:3]), limits=limits)
    programs = [problems[0].solutions[0], ENDLESS, problems[2].solutions[0]]
    completions = [
        Completion(problem.problem_id, 0, program, True)
        for problem, program in zip(problems[:3], programs, strict=True)
    ]
    for attempt in range(2):
        recording, verdicts = Recording(sandbox), Verdicts(tmp_path / "verdicts.jsonl")
        results = judge(harness, completions, lambda: nullcontext(recording), verdicts)  # noqa: B023
        verdicts.close()
        assert [each.verdict for each in results] == ["AC", "TLE", "AC"]
        assert recording.sizes == ([3, 1] if attempt == 0 else [1, 1])
