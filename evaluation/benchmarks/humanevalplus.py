"""HumanEval+: HumanEval's 164 tasks, some 750 inputs each (EvalPlus, arXiv:2305.01210). Gated."""

from __future__ import annotations

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.benchmarks.humaneval import STOP
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.evalplus import plus_harness
from evaluation.judging.plus_task import humaneval_task
from evaluation.sampling import Sampling
from problems.sources.registry import SOURCES

CONVENTIONS = (
    "greedy; prompted as HumanEval; judged as evalplus 0.3.1 does, base and plus inputs separately"
)


def humanevalplus(at: Opened) -> Benchmark:
    return from_problems(
        "humaneval+",
        at.problems,
        Sampling(max_new_tokens=768),  # as upstream
        completes=True,
        conventions=CONVENTIONS,
        upstream="HumanEval/{}",
        stop=(*STOP, "\n```", "\nassert "),
        harness=plus_harness(
            at.name, at.source.name, at.rows(), humaneval_task, digest=at.digest, home=at.home
        ),
    )


HUMANEVALPLUS = Published("humaneval+", SOURCES["humanevalplus"], humanevalplus)
