"""MBPP+: 378 tasks of MBPP in release v0.2.0, 399 in v0.1.0, some 100 inputs each (EvalPlus,
arXiv:2305.01210). Gated.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.evalplus import mbpp_task, plus_harness
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


RELEASES = {378: "v0.2.0", 399: "v0.1.0"}  # by number of tasks


def mbppplus(at: Opened) -> Benchmark:
    return MbppPlus(
        "mbpp+",
        tuple(sorted(at.problems, key=lambda each: each.problem_id)),
        Sampling(max_new_tokens=768),
        conventions=CONVENTIONS,
        upstream="Mbpp/{}",
        stop=STOP,
        published_harness=plus_harness(
            at.name, at.source.name, at.rows(), mbpp_task, at.digest, at.home, RELEASES
        ),
    )


BENCHMARKS = (Published("mbpp+", SOURCES["mbppplus"], mbppplus),)
