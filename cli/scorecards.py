"""Read scorecards that are named by a path on the command line: a file, or a folder of files."""

from __future__ import annotations

from pathlib import Path

from evaluation.promotion.comparison import Incomparable
from evaluation.scorecard import Scorecard

PATTERNS = ("scorecard.json", "*.scorecard.json")


class NoScorecard(Incomparable):
    """No scorecard has this name or path; the message names the fix."""


def at_path(name: str) -> list[Scorecard] | None:
    """Return the scorecard of a file, or all scorecards of a folder, at most one a benchmark.

    Return None if the path does not exist or has no scorecard. Raises NoScorecard.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return [read(path)]
    if not path.is_dir():
        return None
    cards: dict[str, tuple[Path, Scorecard]] = {}
    for file in sorted({file for pattern in PATTERNS for file in path.glob(pattern)}):
        card = read(file)
        if before := cards.get(card.benchmark):
            raise NoScorecard(
                f"{path} holds two scores on {card.benchmark}: give one of the files, "
                f"{before[0].name} or {file.name}"
            )
        cards[card.benchmark] = file, card
    return [card for _, card in cards.values()] or None


def read(path: Path) -> Scorecard:
    """Read a scorecard. Raises NoScorecard if the file is incomplete or something else."""
    try:
        return Scorecard.read(path)
    except ValueError as error:
        raise NoScorecard(
            f"{path}: not a complete scorecard ({str(error).splitlines()[0]}): write it again "
            "with `ratchet evaluate --out`"
        ) from error


def short(path: str) -> str:
    """Return the file's name without folder and endings."""
    return Path(path).name.removesuffix(".json").removesuffix(".scorecard")
