"""A benchmark: its problems, their prompts, the generation settings, and its harness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, Self

from artifacts.hashing import hash_data
from evaluation.benchmark_settings import BenchmarkSettings
from evaluation.judging.by_problem import by_problem
from evaluation.judging.harness import Harness
from evaluation.sampling import Chat, Prompt, Sampling
from problems.columns import ProblemError
from problems.prompt import prompt_messages, prompt_text
from problems.schema import Problem

MAX_ABSENT = 0.1  # share of the tasks


@dataclass(frozen=True)
class Benchmark:
    """Problems in the order of `problem_id`, and how their completions are judged.

    Raises ProblemError without problems, ValueError if one occurs twice.
    """

    name: str
    problems: tuple[Problem, ...]
    sampling: Sampling
    gated: bool = True  # used in reports or promotion: none of its problems may be trained on
    completes: bool = False  # the completion continues the starter code; the program is both
    conventions: str = ""  # for the report: how it follows its publication, and where it departs
    upstream: str = ""  # its own harness's task id, such as "HumanEval/{}"; empty: our id
    stop: tuple[str, ...] = ()  # stop words for a base model
    published_harness: Harness | None = None  # None: judged by the problems' own tests
    form: Literal["chat", "base"] = "chat"  # which of the two prompts a checkpoint gets

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.problems, key=lambda problem: problem.problem_id))
        if not ordered:
            raise ProblemError(f"benchmark {self.name} has no tasks", "give it at least one")
        for one, other in pairwise(ordered):
            if one.problem_id == other.problem_id:
                twice = f"benchmark {self.name} has the problem {one.problem_id} twice"
                raise ValueError(f"{twice}: leave one out")
        object.__setattr__(self, "problems", ordered)

    def with_settings(self, settings: BenchmarkSettings) -> Self:
        """Return this benchmark with the number of completions and the prompt of the settings."""
        sampling = settings.applied(self.sampling)
        if settings.prompt == "chat":
            return replace(self, sampling=sampling)
        return replace(self, sampling=sampling.model_copy(update={"stop": self.stop}), form="base")

    @cached_property
    def harness(self) -> Harness:
        """Return the rules that judge this benchmark's completions, wherever they come from."""
        return self.published_harness or by_problem(self.name, self.problems)

    def task_id(self, problem: Problem) -> str:
        """Return the id that the problem has in the harness and in scorecards."""
        if self.upstream:
            return self.upstream.format(problem.extra["task_id"])
        return self.harness.known_id(problem.problem_id)

    def raw_prompt(self, problem: Problem) -> str:
        """Return the prompt of a base model: the code that its completion continues, else the
        statement and the beginning of a code block.
        """
        return (
            problem.starter_code.strip() + "\n"
            if self.completes
            else f"{prompt_text(problem)}\n\n```python\n"
        )

    def prompt(self, problem: Problem) -> Chat:
        return prompt_messages(problem)

    def model_prompt(self, problem: Problem) -> Prompt:
        """Return the prompt that a checkpoint gets: a chat, or the raw text that it continues."""
        return self.prompt(problem) if self.form == "chat" else self.raw_prompt(problem)

    def measurable(self) -> Benchmark | NotMeasured:
        """Return the benchmark without the few tasks whose packages are missing on this machine.

        The rest has its own version. If more than MAX_ABSENT is missing, nothing is measured.
        """
        reasons = {
            each.problem_id: self.harness.absent(task)
            for each in self.problems
            if (task := self.harness.tasks.get(self.task_id(each)))
        }
        absent = {task: reason for task, reason in reasons.items() if reason}
        if not absent:
            return self
        count = f"{len(absent)} of {len(self.problems)} tasks cannot be measured here"
        first, reason = next(iter(absent.items()))
        if len(absent) > MAX_ABSENT * len(self.problems):
            return NotMeasured(self.name, f"{count}, the first is {first}: {reason}")
        return replace(
            self,
            problems=tuple(each for each in self.problems if each.problem_id not in absent),
            conventions=f"{self.conventions}; {count}: {', '.join(absent)}",
        )

    @cached_property
    def version(self) -> str:
        """The sha256 over problems and prompts. Another release, draw or wording is another
        version; scores of two versions are never compared.
        """
        return hash_data(
            [[each.content_hash, self.model_prompt(each), self.completes] for each in self.problems]
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
    harness: Harness | None = None,
) -> Benchmark:
    """Return the benchmark. Raises ValueError as `Benchmark`."""
    return Benchmark(
        name=name,
        problems=tuple(problems),
        sampling=sampling,
        gated=gated,
        completes=completes,
        conventions=conventions,
        upstream=upstream,
        stop=tuple(stop),
        published_harness=harness,
    )
