"""The settings of curation."""

from __future__ import annotations

from pydantic import NonNegativeInt, PositiveInt

from artifacts.section import Section


class Curation(Section):
    """Conditions for a problem to be used for training."""

    licences: tuple[str, ...] = (
        "Apache-2.0",
        "MIT",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "CC0-1.0",
        "CC-BY-4.0",
        "own",
    )
    """Licences allowed for training, as SPDX writes them. `own` is the licence of rows in your
    own files that name none.
    """
    min_words: NonNegativeInt = 2
    """Minimum number of words in a statement."""
    max_characters: PositiveInt = 20_000
    """Maximum number of characters in a statement, and in a solution."""
    english: bool = True
    """Whether statements must be in English."""
    sentence_model: str = ""
    """Sentence-transformers model for the comparison by meaning, by hub id or path. Empty: the
    packaged all-MiniLM-L6-v2.
    """
    processes: PositiveInt = 2
    """Processes that search for similar problems in a large set; the result does not depend on
    it.
    """
