"""Compare a short answer about facts with reference answers: exact match, and token F1.

Source: Rajpurkar et al. 2016, arXiv:1606.05250, section 6: lower case, no punctuation, no articles,
one blank between words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def plain(text: str) -> str:
    """Return the text that two spellings of one answer have in common.

    Compatibility forms and invisible characters of Unicode count as what they look like.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    text_without_signs = "".join(
        " " if unicodedata.category(c)[0] in "PSZ" else c
        for c in folded
        if unicodedata.category(c) not in ("Cf", "Cs", "Mn")
    )
    return " ".join(_ARTICLES.sub(" ", text_without_signs).split())


def exact(references: Sequence[str], answer: str) -> bool:
    return bool(plain(answer)) and plain(answer) in {plain(text) for text in references}


def token_f1(references: Sequence[str], answer: str, question: str = "") -> float:
    """Return the best F1 over the reference answers, in [0, 1].

    Naming many candidates lowers it. Words of the question are ignored, so that an echo gets 0.
    """
    known = set(plain(question).split())
    answer_words = [word for word in plain(answer).split() if word not in known]
    return max(
        _f1([word for word in plain(text).split() if word not in known], answer_words)
        for text in references
    )


def _f1(reference: list[str], answer_words: list[str]) -> float:
    shared = sum((Counter(reference) & Counter(answer_words)).values())
    return 2 * shared / (len(reference) + len(answer_words)) if shared else 0.0
