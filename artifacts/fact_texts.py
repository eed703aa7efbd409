"""The facts of a manifest in words: `7,414 read, 7,400 kept`.

In: the facts by name, as a stage wrote them. Out: a phrase for each that has a single value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PHRASES = {
    "attempts": "{} attempts",
    "came_in": "{} read",
    "capped": "{} overfull buckets",
    "demonstrations": "{} demonstrations",
    "gated": "{} gated",
    "groups": "{} groups of duplicates",
    "kept": "{} kept",
    "learned_limits": "{} learned limits",
    "left_out_as_solved": "{} left out as solved",
    "not_trained_on": "{} not trained on",
    "parameters": "{} parameters",
    "pass_at_1": "pass@1 {}",
    "problems": "{} problems",
    "proposals": "{} proposals",
    "questions": "{} requests",
    "rejected": "{} rejected",
    "removed": "{} removed",
    "scores": "{} scores",
    "tasks": "{} tasks",
    "tokens": "{} tokens",
    "train": "{} training problems",
    "uncompared": "{} pairs not compared",
}
SHARES = ("pass_at_1", "mean_pass_rate", "validation")
OF_ROWS = {"validation": "{} validation problems"}  # of a count; as a share it is a pass rate
HASH = re.compile(r"[0-9a-f]{40,}")


def fact_texts(facts: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each fact with a single value; a fact that is only true or false is its
    name, or nothing. A fact without a phrase is its name in words and its value.
    """
    texts = []
    for name, value in facts.items():
        words = name.replace("_", " ")
        if isinstance(value, bool):
            texts += [words] if value else []
        elif isinstance(value, int | float | str) and value != "":
            phrase = PHRASES.get(name, words + " {}")
            if isinstance(value, int):
                phrase = OF_ROWS.get(name, phrase)
            texts.append(phrase.format(_text(name, value)))
    return texts


def _text(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return HASH.sub(lambda match: match[0][:12], value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{100 * value:.1f} %" if name in SHARES else f"{value:.4g}"
