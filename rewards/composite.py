"""The reward as a whole: weighted components of one judged answer, and a batch of answers at once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, model_validator

from artifacts.hashing import hash_data, hash_file
from problems.schema import Problem
from rewards.correctness import correctness
from rewards.extraction import extract_code
from rewards.format import well_formed
from rewards.score import Score
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox, run_all

CODE = ("extraction.py", "correctness.py", "format.py", "composite.py", "score.py")


class Weights(BaseModel):
    """How much each component counts; they are divided by their sum."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    correctness: NonNegativeFloat = 0.9
    """What the tests say."""
    format: NonNegativeFloat = 0.1
    """Whether there is a program that defines what was asked for: what a model learns first."""


class RewardConfig(BaseModel):
    """What an answer is paid for."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: Literal["tests", "random"] = "tests"
    """`random` pays 1 or -1 by a hash of problem and answer, whatever the tests say: the control experiment, whose model must not be promoted."""
    weights: Weights = Weights()
    """Of the components of `tests`."""
    sparse: bool = True
    """Correctness pays only where every test passes; else by the share of tests that pass."""

    @model_validator(mode="after")
    def something_counts(self) -> RewardConfig:
        if self.weights.correctness == 0.0:
            raise ValueError("weights.correctness is 0: a reward that ignores the tests teaches none of them; give it a weight above 0")
        return self


class Reward:
    """Pure: the same problem, answer and report give the same score."""

    def __init__(self, config: RewardConfig | None = None) -> None:
        self.config = config or RewardConfig()

    def score(self, problem: Problem, answer: str, report: Report) -> Score:
        """The worth of an answer whose program, `extract_code(answer)`, got this report. No value where the judge failed."""
        parts = self._parts(problem, answer, report)
        if report.verdict is Verdict.INFRA or parts is None:
            return Score(None, Verdict.INFRA, passed=0, total=report.total)
        components, weights = parts
        value = sum(components[name] * weight for name, weight in weights.items()) / sum(weights.values())
        return Score(max(-1.0, min(1.0, value)), report.verdict, components, report.passed, report.total)

    def _parts(self, problem: Problem, answer: str, report: Report) -> tuple[dict[str, float], dict[str, float]] | None:
        """Components and their weights, or None when the judge failed."""
        if self.config.kind == "random":
            return {"random": _coin(problem.problem_id, answer)}, {"random": 1.0}
        right, formed = correctness(report, sparse=self.config.sparse), well_formed(problem, extract_code(answer), report)
        if right is None or formed is None:
            return None
        return {"correctness": right, "format": formed}, self.config.weights.model_dump()


def score_answers(sandbox: Sandbox, reward: Reward, pairs: Sequence[tuple[Problem, str]]) -> list[Score]:
    """Judges and scores a batch; scores in the order of the pairs."""
    jobs = [problem.job(extract_code(answer), f"{problem.problem_id}#{at}") for at, (problem, answer) in enumerate(pairs)]
    reports = run_all(sandbox, jobs)
    return [reward.score(problem, answer, report) for (problem, answer), report in zip(pairs, reports, strict=True)]


def reward_hash(config: RewardConfig) -> str:
    """What two rewards that pay the same have in common: their config and the code that reads it."""
    folder = Path(__file__).parent
    return hash_data({"config": config.model_dump(mode="json"), "code": {name: hash_file(folder / name) for name in CODE}})


def _coin(problem_id: str, answer: str) -> float:
    digest = hashlib.sha256(f"{problem_id}\0{answer}".encode("utf-8", "surrogatepass")).digest()
    return 1.0 if digest[0] & 1 else -1.0
