"""Load a user's own reward: a Python file with a function `reward(task, answer, report)`.

In: its path. Out: a `Reward` like any other.
The file is its user's own code and runs where the reward runs. Completions never run there: they
are judged before the function is called.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast, get_args

from artifacts.hashing import hash_file
from rewards.components.format import well_formed
from rewards.composite import Reward
from rewards.config import RewardConfig
from rewards.extraction import extract_answer, extract_code
from rewards.judging import Judged
from rewards.question import Question
from rewards.score import Score, hacking_facts
from sandbox.protocol import Verdict

Kind = Literal["code", "math", "qa"]


class RewardFileError(ValueError):
    """A reward file that cannot be used. The message is one line and says how to fix it."""


class OwnReward(Reward):
    """A reward from a file. `task` is the kind of tasks that the battery tries it on."""

    def __init__(self, path: Path, config: RewardConfig | None = None) -> None:
        super().__init__(config or RewardConfig(file=str(path)))
        module = _load(path)
        self.path, self.task = path, _task(module, path)
        self._reward = cast(Callable[..., Any], _function(module, path))

    def _score_all(self, batch: Sequence[Judged]) -> list[Score]:
        """Score a batch. Where judging failed there is no score, and the file is not called."""
        return [
            Score(None, Verdict.INFRA, total=judged.report.total)
            if judged.report.verdict is Verdict.INFRA
            else self._call(judged)
            for judged in batch
        ]

    def _call(self, judged: Judged) -> Score:
        result = self._reward(judged.task, judged.completion, judged.report)
        parts = dict(result) if isinstance(result, Mapping) else {"score": result}
        if bad := [
            name
            for name, value in parts.items()
            if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value)
        ]:
            raise RewardFileError(
                f"{self.path}: reward() returned {parts[bad[0]]!r} for {bad[0]!r}: return finite "
                "numbers"
            )
        if "score" not in parts or not -1.0 <= parts["score"] <= 1.0:
            raise RewardFileError(
                f"{self.path}: reward() returned {result!r}: give a number in [-1, 1], or a dict "
                "with such a `score`"
            )
        components = {name: float(value) for name, value in parts.items() if name != "score"} or {
            "own": float(parts["score"])
        }
        report = judged.report
        return Score(
            float(parts["score"]),
            report.verdict,
            components,
            report.passed,
            report.total,
            {"own": float(parts["score"])},
            **hacking_facts(judged),
        )


def reward_of(config: RewardConfig) -> Reward:
    """Return the reward that a config describes, for training.

    Raises RewardFileError for a file that cannot be used, or that does not reward programs.
    """
    if not config.file:
        return Reward(config)
    own = OwnReward(Path(config.file), config)
    if own.task != "code":
        raise RewardFileError(
            f'{config.file}: TASK must be "code", got "{own.task}": training needs a reward for '
            "programs"
        )
    return own


def format_of(task: Any, completion: str, report: Any) -> float:
    """Return 1 where the completion has the required form, else -1. For use in reward files.

    The form is a program with the required function, or a marked final answer.
    """
    if isinstance(task, Question):
        return 1.0 if extract_answer(completion) else -1.0
    return (
        well_formed(task, extract_code(completion, task.entry_point, task.language), report) or -1.0
    )


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise RewardFileError(
            f"no reward file {path}: `ratchet reward new --task code --out {path}` writes one"
        )
    name = f"ratchet_reward_{hash_file(path)[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RewardFileError(f"{path}: the name of a reward file must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RewardFileError(
            f"{path}: cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module


def _task(module: ModuleType, path: Path) -> Kind:
    task = getattr(module, "TASK", None)
    if task not in get_args(Kind):
        raise RewardFileError(f'{path}: TASK must be "code", "math" or "qa", got {task!r}')
    return cast(Kind, task)


def _function(module: ModuleType, path: Path) -> object:
    function = getattr(module, "reward", None)
    if not callable(function):
        raise RewardFileError(f"{path}: define a function reward(task, answer, report)")
    return function
