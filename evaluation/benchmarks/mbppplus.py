"""MBPP+: 378 tasks of MBPP in release v0.2.0, 399 in v0.1.0, some 100 inputs each (EvalPlus,
arXiv:2305.01210). Gated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.evalplus import plus_harness
from evaluation.judging.plus_task import mbpp_task
from evaluation.sampling import Sampling
from problems.schema import Problem
from problems.sources.registry import SOURCES

CONVENTIONS = (
    "greedy; the task with one assertion, a base model after it as a docstring; judged as "
    "evalplus 0.3.1 does, base and plus inputs separately"
)
STOP = ('\n"""', "\nassert", "\nif __name__", "\ndef main(", "\nprint(", "\n```")


@dataclass(frozen=True)
class MbppPlus(Benchmark):
    def raw_prompt(self, problem: Problem) -> str:
        """Return upstream's prompt: the docstring with the task and its assertion, stripped."""
        return str(problem.extra["prompt"]).strip() + "\n"


RELEASES = {378: "v0.2.0", 399: "v0.1.0"}  # by number of tasks


# Results that evalplus compares as sets since 0.3, and exactly before: tasks 2, 111, 232, 249, 579.
EXACT_BEFORE = (
    "similar_elements",
    "common_in_nested_lists",
    "larg_nnum",
    "intersection_array",
    "find_dissimilar",
)


def mbppplus(at: Opened, upstream: str, exact: tuple[str, ...]) -> Benchmark:
    return MbppPlus(
        at.name,
        tuple(at.problems),
        Sampling(max_new_tokens=768),
        conventions=CONVENTIONS.replace("evalplus 0.3.1", upstream),
        upstream="Mbpp/{}",
        stop=STOP,
        published_harness=plus_harness(
            at.name,
            at.source.name,
            at.rows(),
            partial(mbpp_task, exact=exact),
            digest=at.digest,
            home=at.home,
            releases=RELEASES,
            upstream=upstream,
        ),
    )


MBPPPLUS = Published(
    "mbpp+", SOURCES["mbppplus"], partial(mbppplus, upstream="evalplus 0.3.1", exact=())
)
MBPPPLUS_BEFORE = Published(
    "mbpp+evalplus-0.2",
    SOURCES["mbppplus"],
    partial(mbppplus, upstream="evalplus 0.2", exact=EXACT_BEFORE),
)
