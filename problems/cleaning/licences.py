"""Whether a licence is allowed, however its name is spelled.

Allowed licences are named as SPDX does; a row may say `MIT License`, `Apache 2.0` or an SPDX
expression (`MIT OR GPL-3.0`). A name without the version that decides (`BSD`, `CC BY`) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 500  # characters of an expression
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

PREFIX = re.compile(r"(?i)^SPDX-License-Identifier:|^Licen[sc]e\s*::?(?:\s*OSI Approved\s*::)?")
EXCEPTION = re.compile(r"\sWITH\s+[\w.-]+-exception[\w.-]*$")  # permits more
SAME = (
    (re.compile(r".*apache\.org/licenses/license-(\d\.\d)\S*"), r"apache-\1"),
    (re.compile(r".*creativecommons\.org/licenses/([a-z-]+)/(\d\.\d).*"), r"cc-\1-\2"),
    (re.compile(r".*creativecommons\.org/publicdomain/zero/.*"), "cc0-1.0"),
    (re.compile(r"(?:the )?(?:new|revised|modified) bsd(?: licen[sc]e)?"), "bsd-3-clause"),
    (re.compile(r"(?:the )?(?:simplified bsd|freebsd)(?: licen[sc]e)?"), "bsd-2-clause"),
)


def is_allowed(licence: str, allowed: Iterable[str]) -> bool:
    """Return whether an SPDX expression, or a licence in other words, is allowed.

    Of licences joined by OR one must be allowed, of licences joined by AND or "/" all; parentheses
    count.
    """
    known = {_plain(name) for name in allowed} | {name.casefold() for name in allowed}

    def holds(text: str) -> bool:
        text = EXCEPTION.sub("", PREFIX.sub("", text.strip()).strip())
        for word, combine in (("OR", any), ("AND", all)):
            if len(parts := _split(text, word)) > 1:
                return combine(map(holds, parts))
        if "://" not in text and len(parts := text.split("/")) > 1:
            return all(map(holds, parts))
        if text.startswith("(") and text.endswith(")"):
            return holds(text[1:-1])
        return text.casefold() in known or _plain(text) in known

    return len(licence) <= LONGEST and holds(licence)


def _split(text: str, word: str) -> list[str]:
    """Split an expression at a word that is in no parentheses."""
    depth, begin, parts = 0, 0, list[str]()
    for found in re.finditer(rf"[()]|\s{word}(?=\s)", text):
        depth += (found[0] == "(") - (found[0] == ")")
        if depth == 0 and word in found[0]:
            parts.append(text[begin : found.start()])
            begin = found.end()
    return [*parts, text[begin:]]


def _plain(name: str) -> str:
    """Return a licence's name in small letters, in SPDX's spelling where it is known."""
    text = name.strip().rstrip("/").removesuffix(".html")
    for pattern, same in SAME:
        if found := pattern.fullmatch(text.casefold()):
            return found.expand(same)
    text = (text.rpartition("/")[2] if "://" in text else text).casefold()
    text = IDLE.sub(" ", re.sub(r"\bv\.?\s?(?=\d)|(?<=[a-z])v(?=\d)", " ", text))
    words = dict.fromkeys(re.findall(r"[a-z0-9]+(?:\.\d+)*", text))  # `MIT License (MIT)`
    plain = "-".join(words)
    return OTHER_NAMES.get(plain, plain)
