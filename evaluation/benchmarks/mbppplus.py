"""MBPP+: 378 tasks of MBPP in release v0.2.0, 399 in v0.1.0, some 100 inputs each (EvalPlus,
arXiv:2305.01210). Gated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.evalplus import mbpp_task, plus_harness
from evaluation.judging.harness import Harness
from evaluation.sampling import Sampling
from problems.schema import Problem
from problems.sources.registry import SOURCES

CONVENTIONS = (
    "greedy; the task with one assertion, a base model after it as a docstring; judged as "
    "evalplus 0.3.1 does, base and plus inputs apart"
)
STOP = ('\n"""', "\nassert", "\nif __name__", "\ndef main(", "\nprint(", "\n```")


@dataclass(frozen=True)
class MbppPlus(Benchmark):
    def raw_prompt(self, problem: Problem) -> str:
        """Return upstream's prompt: the docstring with the task and its assertion, stripped."""
        return str(problem.extra["prompt"]).strip() + "\n"


def mbppplus(problems: Sequence[Problem]) -> Benchmark:
    tasks = sorted(
        (each for each in problems if each.source == "mbppplus"), key=lambda each: each.problem_id
    )
    return MbppPlus(
        "mbpp+",
        tuple(tasks),
        Sampling(max_new_tokens=768),
        conventions=CONVENTIONS,
        upstream="Mbpp/{}",
        stop=STOP,
    )


RELEASES = {378: "v0.2.0", 399: "v0.1.0"}  # by number of tasks


def harness(at: Opened, home: Path) -> Harness:
    return plus_harness(at.name, at.source.name, at.rows(), mbpp_task, at.digest, home, RELEASES)


BENCHMARKS = (Published("mbpp+", SOURCES["mbppplus"], harness, mbppplus),)
