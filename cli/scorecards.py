"""Scorecards as named on the command line: a file, or a folder of files, written by `ratchet
evaluate`.
"""

from __future__ import annotations

from pathlib import Path

from evaluation.promotion.comparison import Incomparable
from evaluation.scorecard import Scorecard

PATTERNS = ("scorecard.json", "*.scorecard.json")


class NoScorecard(Incomparable):
    """What was named has no scores, or is no scorecard; the message says which, and the fix."""


def at_path(named: str) -> list[Scorecard] | None:
    """Return a file's card, or those of a folder by benchmark; None if there is none. Raises
    NoScorecard.
    """
    path = Path(named).expanduser()
    if path.is_file():
        return [read(path)]
    if not path.is_dir():
        return None
    cards: dict[str, tuple[Path, Scorecard]] = {}
    for file in sorted({file for pattern in PATTERNS for file in path.glob(pattern)}):
        card = read(file)
        if before := cards.get(card.benchmark):
            raise NoScorecard(
                f"{path} holds two scores on {card.benchmark}, {before[0].name} and "
                f"{file.name}: name the file that is meant"
            )
        cards[card.benchmark] = file, card
    return [card for _, card in cards.values()] or None


def read(path: Path) -> Scorecard:
    """Raises NoScorecard for a file that is half written or something else."""
    try:
        return Scorecard.read(path)
    except ValueError as error:
        raise NoScorecard(
            f"{path}: no whole scorecard ({str(error).splitlines()[0]}): write it again with "
            "`ratchet evaluate`"
        ) from error


def short(path: str) -> str:
    """A file without folder and endings, as a name."""
    return Path(path).name.removesuffix(".json").removesuffix(".scorecard")
