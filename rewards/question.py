"""A task with a statement as its answer, not a program: mathematics, or a question about facts.

The sandbox is not involved.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

from problems.dataset.rl_parquet import problem_from_ground_truth
from problems.schema import Problem


@dataclass(frozen=True)
class Question:
    """A question. Each of `answers` is right on its own; for `math` in LaTeX or plain text.

    form: for mathematics, `evaluated` requires a result; `any` also accepts an expression for it,
    such as `37 \\times 43`.
    """

    question_id: str
    statement: str
    task: Literal["math", "qa"]
    answers: tuple[str, ...]
    form: Literal["evaluated", "any"] = "evaluated"

    def __post_init__(self) -> None:
        if not any(answer.strip() for answer in self.answers):
            raise ValueError(
                f"question {self.question_id}: `answers` needs at least one non-empty text"
            )

    @property
    def problem_id(self) -> str:
        return self.question_id


RewardTask = Problem | Question


def question_truth(question: Question) -> str:
    """Return the text for verl's `ground_truth` column."""
    return json.dumps(asdict(question), sort_keys=True)


def task_from_ground_truth(text: str) -> RewardTask:
    """Inverse of `question_truth` and of `problems.dataset.rl_parquet.ground_truth`.

    Raises ValueError or ProblemError, naming what is missing.
    """
    data = json.loads(text)
    if not isinstance(data, dict) or "task" not in data:
        return problem_from_ground_truth(text)
    if missing := {"question_id", "task", "answers"} - set(data):
        raise ValueError(
            f"ground_truth lacks {', '.join(sorted(missing))}: write it with "
            "rewards.question.question_truth"
        )
    if data["task"] not in ("math", "qa"):
        raise ValueError(f"ground_truth: `task` must be math or qa, got {data['task']!r}")
    form = data.get("form", "evaluated")
    if form not in ("evaluated", "any"):
        raise ValueError(f"ground_truth: `form` must be evaluated or any, got {form!r}")
    return Question(
        data["question_id"],
        data.get("statement", ""),
        data["task"],
        tuple(map(str, data["answers"])),
        form,
    )
