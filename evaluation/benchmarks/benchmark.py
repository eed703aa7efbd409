"""A benchmark: its problems, their prompts, and the generation settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from artifacts.hashing import hash_data
from evaluation.sampling import Chat, Sampling
from problems.dataset.rl_parquet import prompt_text
from problems.schema import Problem


def nothing(_: Problem) -> str:
    return ""


@dataclass(frozen=True)
class Benchmark:
    """Problems in the order of `problem_id`. Prompt, limits, tests and entry point are the
    problems' own, the same as in training.
    """

    name: str
    problems: tuple[Problem, ...]
    sampling: Sampling
    gated: bool = True  # used in reports or promotion: none of its problems may be trained on
    completes: bool = False  # the completion continues the starter code; the program is both
    conventions: str = ""  # for the report: how it follows its publication, and where it departs
    upstream: str = ""  # its own harness's task id, such as "HumanEval/{}"; empty: our id
    stop: tuple[str, ...] = ()  # stop words for a base model
    ahead: Callable[[Problem], str] = nothing  # the code that upstream puts before each completion

    def task_id(self, problem: Problem) -> str:
        return (
            self.upstream.format(problem.extra["task_id"]) if self.upstream else problem.problem_id
        )

    def raw_prompt(self, problem: Problem) -> str:
        """Return the prompt of a base model: the code that its completion continues, else the
        question and the beginning of a code block.
        """
        return (
            problem.starter_code.strip() + "\n"
            if self.completes
            else f"{prompt_text(problem)}\n\n```python\n"
        )

    def prompt(self, problem: Problem) -> Chat:
        return [{"role": "user", "content": prompt_text(problem)}]

    def program(self, problem: Problem, code: str) -> str:
        """Return the program to judge. A whole function after the starter code replaces the
        unfinished one; imports and helpers stay.
        """
        if not code:
            return code
        return (
            f"{problem.starter_code.rstrip()}\n{code}"
            if self.completes
            else self.ahead(problem) + code
        )

    @cached_property
    def version(self) -> str:
        """The sha256 over problems and prompts. Another release, draw or wording is another
        version; scores of two versions are never compared.
        """
        return hash_data(
            [
                [
                    each.content_hash,
                    self.prompt(each),
                    self.completes,
                    *filter(None, [self.ahead(each)]),
                ]
                for each in self.problems
            ]
        )


@dataclass(frozen=True)
class NotMeasured:
    name: str
    reason: str


def from_problems(
    name: str,
    problems: Sequence[Problem],
    sampling: Sampling,
    *,
    gated: bool = True,
    completes: bool = False,
    conventions: str = "",
    upstream: str = "",
    stop: Sequence[str] = ("\n```",),
    ahead: Callable[[Problem], str] = nothing,
) -> Benchmark:
    """Return the benchmark. Raises ValueError without problems, or if one occurs twice."""
    ordered = tuple(sorted(problems, key=lambda problem: problem.problem_id))
    if not ordered:
        raise ValueError(f"benchmark {name} has no problems: give it at least one")
    if twice := next(
        (a.problem_id for a, b in pairwise(ordered) if a.problem_id == b.problem_id), None
    ):
        raise ValueError(f"benchmark {name} has the problem {twice} twice: leave one out")
    return Benchmark(
        name, ordered, sampling, gated, completes, conventions, upstream, tuple(stop), ahead
    )
