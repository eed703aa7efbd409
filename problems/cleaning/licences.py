"""Whether a licence is allowed, however its name is spelled.

Allowed licences are named as SPDX does; a row may say `MIT License`, `Apache 2.0` or an SPDX
expression (`MIT OR GPL-3.0`). A name without the version that decides (`BSD`, `CC BY`) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Words that do not tell one licence from another.
IDLE = re.compile(
    r"\b(?:the|an?|licensed?|licences?|licenses|under|version|software|public|international|"
    r"universal|unported|generic|only|dedication|new|revised|simplified|clear|or|foundation)\b"
)
OTHER_NAMES = {  # without idle words -> SPDX, in small letters
    "expat": "mit",
    "apache2": "apache-2.0",
    "apache-2": "apache-2.0",
    "asl-2.0": "apache-2.0",
    "bsd-2": "bsd-2-clause",
    "bsd2": "bsd-2-clause",
    "2-clause-bsd": "bsd-2-clause",
    "bsd-3": "bsd-3-clause",
    "bsd3": "bsd-3-clause",
    "3-clause-bsd": "bsd-3-clause",
    "cc0": "cc0-1.0",
    "cc-zero": "cc0-1.0",
    "creative-commons-zero": "cc0-1.0",
    "creative-commons-zero-1.0": "cc0-1.0",
    "creative-commons-attribution-4.0": "cc-by-4.0",
    "creative-commons-attribution-sharealike-4.0": "cc-by-sa-4.0",
    "creative-commons-attribution-share-alike-4.0": "cc-by-sa-4.0",
}


def is_allowed(licence: str, allowed: Iterable[str]) -> bool:
    """Return whether an SPDX expression, or a licence in other words, is allowed.

    Of licences joined by OR one must be allowed, of licences joined by AND all.
    """
    known = {_plain(name) for name in allowed} | {name.casefold() for name in allowed}
    choices = re.split(r"\s+OR\s+", licence.strip().removeprefix("(").removesuffix(")"))
    return any(
        all(
            each.casefold() in known or _plain(each) in known
            for each in re.split(r"\s+AND\s+", choice)
        )
        for choice in choices
    )


def _plain(name: str) -> str:
    """Return a licence's name in small letters, in SPDX's spelling where it is known."""
    text = name.strip().rstrip("/")
    text = (text.rpartition("/")[2] if "://" in text else text).casefold()
    text = IDLE.sub(" ", re.sub(r"\bv\.?\s?(?=\d)|(?<=[a-z])v(?=\d)", " ", text))
    words = dict.fromkeys(re.findall(r"[a-z0-9]+(?:\.\d+)*", text))  # `MIT License (MIT)`
    plain = "-".join(words)
    return OTHER_NAMES.get(plain, plain)
