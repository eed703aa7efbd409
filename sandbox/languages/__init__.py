"""Languages of programs besides Python, one a file: how a program is compiled and run.

In: the text of a program. Out: the commands that its process becomes, and what they may read.
"""

from __future__ import annotations

import sys

from sandbox.discovery import entries
from sandbox.languages.language import Language

PYTHON = "python"
LANGUAGES = entries(sys.modules[__name__], Language, "name")


def language_of(written: str) -> str:
    """Return the language that datasets and Markdown call so, such as `js`; else Python."""
    found = (
        each.name for each in LANGUAGES.values() if written.lower() in (each.name, *each.fences)
    )
    return next(found, PYTHON)
