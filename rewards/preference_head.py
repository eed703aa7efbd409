"""Predict from the text of two programs which one people prefer, for texts that nobody was shown.

In: choices. Out: a value in [-1, 1] for any program, and its accuracy on held-out problems.
Bradley and Terry's model with a linear strength: the logarithm of the odds of a choice is the
difference of the two programs' features, times a weight each. Newton's method with a ridge fits it.
The features are what a reader sees at once (FEATURES). What a program does is not among them.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log1p
from typing import TYPE_CHECKING

from problems.syntax import tree_of
from problems.wilson import wilson_bounds
from rewards.blocks import PARSED
from rewards.choices import ShownChoice
from rewards.extraction import extract_code

if TYPE_CHECKING:
    import numpy as np

FEATURES = (
    "characters", "lines", "mean line", "blank lines", "comments", "docstrings", "functions",
    "classes", "loops", "branches", "comprehensions", "annotations", "mean name", "depth",
)  # fmt: skip
RIDGE = 1.0  # pulls every weight to 0, as if a little had been seen against it
FOLDS, ROUNDS = 5, 25
FEWEST = 10  # problems with a decided choice; with fewer nothing is known of others


@dataclass(frozen=True)
class PreferenceHead:
    """A fitted head. `accuracy` is the share of the choices on held-out problems that it predicts,
    with its 95 % interval over problems.
    """

    weights: tuple[float, ...]
    middle: tuple[float, ...]  # features of an average program
    shown: tuple[tuple[float, float], ...]  # each feature's least and greatest value
    problems: int
    accuracy: float
    interval: tuple[float, float]

    @property
    def knows(self) -> bool:
        """Whether it predicts better than a coin: only then it has a value for a program."""
        return self.problems >= FEWEST and self.interval[0] > 0.5

    def value(self, code: str) -> float | None:
        """Return 2 p - 1, where p is the chance of being chosen over an average program.

        A feature counts up to the values that people saw: a line of 100,000 characters is no better
        than the longest of theirs.
        """
        if not self.knows:
            return None
        strength = sum(
            weight * (min(max(own, least), most) - middle)
            for weight, own, middle, (least, most) in zip(
                self.weights, features(code), self.middle, self.shown, strict=True
            )
        )
        return 2.0 / (1.0 + exp(-max(-30.0, min(30.0, strength)))) - 1.0

    def __str__(self) -> str:
        low, high = self.interval
        nothing = (
            f"not better than a coin on {FEWEST} problems or more, so other texts have no value"
        )
        use = "other texts have a value too" if self.knows else nothing
        return (
            f"{100 * self.accuracy:.0f} % ({100 * low:.0f} to {100 * high:.0f}) of the choices on "
            f"{self.problems} held-out problems are predicted from the text: {use}"
        )


def fit_head(choices: Sequence[ShownChoice]) -> PreferenceHead | None:
    """Fit a head; None where no choice was decided. Its accuracy is that of heads that were fitted
    without the problem they predict.
    """
    import numpy as np

    decided = [choice for choice in choices if choice.chosen != "tie"]
    if not decided:
        return None
    texts = sorted({text for choice in decided for text in (choice.left, choice.right)})
    known = dict(zip(texts, map(np.array, map(features, map(extract_code, texts))), strict=True))
    seen = np.array(list(known.values()))
    scale = seen.std(axis=0)
    scale[scale == 0.0] = 1.0
    wins = [
        (each.left, each.right) if each.chosen == "left" else (each.right, each.left)
        for each in decided
    ]
    differences = np.array([(known[best] - known[other]) / scale for best, other in wins])
    folds = np.array([_fold(choice.problem_id) for choice in decided])
    right: dict[str, list[float]] = {}
    for fold in range(FOLDS):
        weights = _fit(differences[folds != fold])
        for at in np.flatnonzero(folds == fold):
            margin = float(differences[at] @ weights)
            share = 0.5 if abs(margin) < 1e-9 else float(margin > 0.0)
            right.setdefault(decided[at].problem_id, []).append(share)
    accuracy = float(np.mean([np.mean(shares) for shares in right.values()]))
    weights = _fit(differences) / scale
    shown = zip(seen.min(axis=0).tolist(), seen.max(axis=0).tolist(), strict=True)
    interval = wilson_bounds(round(accuracy * len(right)), len(right))
    return PreferenceHead(
        tuple(weights.tolist()),
        tuple(seen.mean(axis=0).tolist()),
        tuple(shown),
        len(right),
        accuracy,
        interval,
    )


def _fit(differences: np.ndarray) -> np.ndarray:
    """Return the weights under which each row, winner less loser, is likeliest (Newton)."""
    import numpy as np

    width = differences.shape[1]
    weights = np.zeros(width)
    for _ in range(ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(differences @ weights, -30.0, 30.0)))
        gradient = differences.T @ (1.0 - chance) - RIDGE * weights
        curvature = (differences.T * (chance * (1.0 - chance))) @ differences
        step = np.linalg.solve(curvature + RIDGE * np.eye(width), gradient)
        weights = weights + step
        if float(np.abs(step).max(initial=0.0)) < 1e-8:
            break
    return weights


def features(code: str) -> tuple[float, ...]:
    """Return the features of a program's text, in the order of FEATURES.

    Counts are logarithms. Of a text that is no Python, only the lines count.
    """
    lines = code.strip().splitlines()
    filled = [line for line in lines if line.strip()]
    comments = sum(line.lstrip().startswith("#") for line in filled)
    text = (
        log1p(len(code.strip())),
        log1p(len(filled)),
        sum(map(len, filled)) / max(1, len(filled)) / 10,
        (len(lines) - len(filled)) / max(1, len(lines)),
        comments / max(1, len(filled)),
    )
    tree = tree_of(code) if len(code) <= PARSED else None
    if tree is None:
        return (*text, *[0.0] * (len(FEATURES) - len(text)))
    nodes = list(ast.walk(tree))
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = [n.id for n in nodes if isinstance(n, ast.Name)] + [
        n.arg for n in nodes if isinstance(n, ast.arg)
    ]

    def count(*kinds: type[ast.AST]) -> float:
        return log1p(sum(isinstance(node, kinds) for node in nodes))

    annotated = sum(n.returns is not None for n in functions) + sum(
        n.annotation is not None for n in nodes if isinstance(n, ast.arg)
    )
    return (
        *text,
        log1p(sum(ast.get_docstring(n) is not None for n in (tree, *functions))),
        log1p(len(functions)),
        count(ast.ClassDef),
        count(ast.For, ast.AsyncFor, ast.While),
        count(ast.If, ast.IfExp, ast.Try, ast.Match),
        count(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
        log1p(annotated),
        sum(map(len, names)) / max(1, len(names)) / 10,
        max((len(line) - len(line.lstrip()) for line in filled), default=0) / 4,
    )


def _fold(problem_id: str) -> int:
    return hashlib.sha256(problem_id.encode("utf-8", "surrogatepass")).digest()[0] % FOLDS
