"""The state of a problem while it is verified, and what verification asks of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from problems.schema import Problem
from problems.syntax import normal_form
from problems.verification.limits import cost, maximum_cost
from problems.verification.mutants import Mutant
from sandbox.languages import LANGUAGES
from sandbox.protocol import Report

BROKEN_TESTS = "its tests cannot be run"
FLICKERS = "verdict flickers"
TOO_WEAK = "tests too weak"
DISAGREE = "references disagree"
ANY_ANSWER = "any of several answers is right, and nothing checks them"
UNSOLVED = "samples do not agree"


class NoVerdict(RuntimeError):
    """The sandbox failed, not the problems. Decided problems are in the journal, so run again."""


def judges(problem: Problem) -> bool:
    """Return whether the problem's tests ever judge a completion."""
    return problem.split != "demonstrations"


def references(problem: Problem) -> list[str]:
    """Return its solutions, without those that differ from another only in layout."""
    if len(problem.solutions) == 1:
        return [*problem.solutions]
    return list(
        {normal_form(solution): solution for solution in reversed(problem.solutions)}.values()
    )[::-1]


def composed(problem: Problem) -> bool:
    """Return whether the problem is composed of our own operations.

    One operation may undo another (sorted, then sorted again); then all its mutants are the same
    program.
    """
    return "composition" in problem.extra


def needs_strength(problem: Problem) -> bool:
    """Return whether weak tests exclude the problem.

    They exclude all problems for training or tuning, except compositions, where a surviving mutant
    says little.
    """
    return judges(problem) and not problem.gated and not composed(problem)


def idle_answer(problem: Problem) -> str:
    """Return a minimal program that returns None, or prints nothing.

    Tests that accept it decide nothing.
    """
    if language := LANGUAGES.get(problem.language):
        return language.idle
    name, _, method = (problem.entry_point or "").partition("().")
    if method:
        return f"class {name}:\n    def {method}(*args, **kwargs):\n        return None\n"
    return f"def {name}(*args, **kwargs):\n    return None\n" if name else "pass\n"


@dataclass
class ProblemCheck:
    """The state of one problem of a batch; `fault` is (reason, detail) once something is wrong."""

    problem: Problem
    fault: tuple[str, str] | None
    own: list[Report] = field(default_factory=list)  # reports on its solutions
    dropped: tuple[int, ...] = ()  # positions of wrong solutions, which `problem` lacks
    # positions of the samples that became solutions of `problem`, and the share that passes
    solved: tuple[int, ...] = ()
    agreement: float | None = None
    undecided: str = ""  # why the sandbox has no verdict
    decided: int = 0  # number of mutants with a verdict, without equivalent ones
    equivalent: int = 0  # mutants that act like the first solution
    survivors: list[Mutant] = field(default_factory=list)
    added: tuple[dict[str, Any], ...] = ()  # tests that reject mutants which survived before

    @property
    def sound(self) -> bool:
        return not self.fault and not self.undecided

    @property
    def cost(self) -> tuple[float, float, float]:
        return maximum_cost(map(cost, self.own))
