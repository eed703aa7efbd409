"""MBPP, its test tasks 11 to 510 (Austin et al. 2021, arXiv:2108.07732). Gated: none may be trained
on.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.by_problem import ProblemHarness, tasks_of
from evaluation.sampling import Sampling
from problems.cleaning.gating import MBPP_TEST
from problems.schema import Problem
from problems.sources.registry import SOURCES
from rewards.extraction import extract_code

SHOTS = (2, 3, 4)  # the published examples
CONVENTIONS = (
    "greedy; a chat gets one test and no examples, a base model all three tests after the "
    "published three examples; test tasks 11 to 510"
)


@dataclass(frozen=True)
class Mbpp(Benchmark):
    """MBPP with its published prompt for base models.

    `shots`: solved tasks that precede the task in a base model's prompt.
    """

    shots: tuple[Problem, ...] = ()

    def raw_prompt(self, problem: Problem) -> str:
        """Return the published prompt (Austin et al. 2021, figure 1): each task with its tests, its
        program between [BEGIN] and [DONE].
        """
        solved = [
            f"{_task_text(shot)}[BEGIN]\n{shot.solutions[0].strip()}\n[DONE]\n\n"
            for shot in self.shots
        ]
        return f"{''.join(solved)}{_task_text(problem)}[BEGIN]\n"


def _task_text(problem: Problem) -> str:
    tests = "\n".join(problem.extra["test_list"])
    return (
        f"You are an expert Python programmer, and here is your task: {problem.statement.strip()} "
        f"Your code should pass these tests:\n\n{tests}\n"
    )


def mbpp(at: Opened) -> Benchmark:
    """Return the benchmark: the code, the set-up and the assertions of the published test tasks; a
    few-shot completion ends at its [DONE].

    Gated tasks outside the test range (MBPP+ has 108 of them) are excluded from training and from
    this score.
    """
    problems = sorted(at.problems, key=lambda problem: problem.problem_id)
    tests = tuple(problem for problem in problems if problem.extra["task_id"] in MBPP_TEST)
    shots = tuple(problem for problem in problems if problem.extra["task_id"] in SHOTS)
    harness = ProblemHarness(
        at.name,
        "1",
        "Austin et al. 2021",
        tasks_of(tests, lambda each: f"Mbpp/{each.extra['task_id']}", lambda each: ""),
        at.digest,
        at.source.name,
        extract=lambda text, entry_point, _: extract_code(text.split("[DONE]")[0], entry_point),
    )
    return Mbpp(
        "mbpp",
        tests,
        Sampling(max_new_tokens=512),
        conventions=CONVENTIONS,
        upstream="Mbpp/{}",
        stop=("[DONE]",),
        published_harness=harness,
        shots=shots,
    )


MBPP = Published("mbpp", SOURCES["mbpp"], mbpp)
