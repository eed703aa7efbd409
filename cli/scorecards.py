"""Scorecards as named on the command line: a file, or a folder of files, written by `ratchet
evaluate` or by another tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.logs.registry import formats, read_log
from evaluation.promotion.rate import Incomparable
from evaluation.scorecard import Scorecard

PATTERNS = ("scorecard.json", "*.scorecard.json")


class NoScorecard(Incomparable):
    """What was named has no scores, or is no scorecard; the message says which, and the fix."""


def at_path(named: str, metrics: Sequence[str] | None = None) -> list[Scorecard] | None:
    """Return a file's card, or those of a folder by benchmark; None if there is none.

    metrics: the scores or sets of tests to read; empty for the usual ones; None for a command that
    needs programs. Raises NoScorecard, and LogError for another tool's log.
    """
    path = Path(named).expanduser()
    if path.is_file():
        return [read(path, metrics)]
    if not path.is_dir():
        return None
    logs = tuple(pattern for form in formats() for pattern in form.patterns)
    files = {file for pattern in PATTERNS for file in path.glob(pattern)} or {
        file for pattern in logs for file in path.glob(pattern)
    }
    cards: dict[str, tuple[Path, Scorecard]] = {}
    for file in sorted(files):
        card = read(file, metrics)
        if before := cards.get(card.benchmark):
            raise NoScorecard(
                f"{path} holds two scores on {card.benchmark}, {before[0].name} and "
                f"{file.name}: name the file that is meant"
            )
        cards[card.benchmark] = file, card
    return [card for _, card in cards.values()] or None


def read(path: Path, metrics: Sequence[str] | None = None) -> Scorecard:
    """Return a file's card. Raises NoScorecard for one that is half written or something else."""
    if card := read_log(path, metrics):
        return card
    try:
        return by_tests(Scorecard.read(path), metrics or ())
    except ValueError as error:
        raise NoScorecard(
            f"{path}: no whole scorecard or log ({str(error).splitlines()[0]}): write it again"
        ) from error


def by_tests(card: Scorecard, names: Sequence[str]) -> Scorecard:
    """Return the card by the one of these sets of tests that it has; by all tests without names.
    Raises NoScorecard if it has none of them, or several.
    """
    if not names:
        return card
    own = [name for name in names if name in card.tests]
    if len(own) != 1:
        raise NoScorecard(
            f"{card.checkpoint} on {card.benchmark}: --metric must name one of its sets of tests: "
            f"{', '.join(card.tests) or 'it has no names for any; leave --metric out'}"
        )
    samples = [
        each.model_copy(update={"verdict": "AC"}) if each.sets[own[0]] else each
        for each in card.samples
    ]
    harness = f"{card.harness_version}, {own[0]}"
    return card.model_copy(update={"samples": tuple(samples), "harness_version": harness})


def is_path(named: str) -> bool:
    return Path(named).expanduser().exists()


def short(path: str) -> str:
    """A file without folder and endings, as a name."""
    return Path(path).name.removesuffix(".json").removesuffix(".scorecard").removesuffix(".eval")
