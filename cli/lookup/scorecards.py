"""Read scorecards that are named by a path on the command line: a file or folder that `ratchet
evaluate` or another tool wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.logs.registry import formats, read_log
from evaluation.promotion.rate import Incomparable
from evaluation.scorecard import Scorecard

PATTERNS = ("scorecard.json", "*.scorecard.json")


class NoScorecard(Incomparable):
    """No scorecard has this name or path; the message names the fix."""


def at_path(name: str, metrics: Sequence[str] | None = None) -> list[Scorecard] | None:
    """Return the scorecard of a file, or all scorecards of a folder, at most one a benchmark.

    metrics: the scores or test sets to read; empty for the default ones; None for a command that
    needs programs. Return None if the path does not exist or has no scorecard. Raises NoScorecard,
    and LogError for another tool's log.
    """
    path = Path(name).expanduser()
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
                f"{path} holds two scores on {card.benchmark}: give one of the files, "
                f"{before[0].name} or {file.name}"
            )
        cards[card.benchmark] = file, card
    return [card for _, card in cards.values()] or None


def read(path: Path, metrics: Sequence[str] | None = None) -> Scorecard:
    """Read a scorecard. Raises NoScorecard if the file is incomplete or something else."""
    if card := read_log(path, metrics):
        return card
    try:
        return by_tests(Scorecard.read(path), metrics or ())
    except ValueError as error:
        raise NoScorecard(
            f"{path}: neither a complete scorecard nor a log of a known tool "
            f"({str(error).splitlines()[0]}): give a scorecard.json, or another tool's log"
        ) from error


def by_tests(card: Scorecard, names: Sequence[str]) -> Scorecard:
    """Return the scorecard with the verdicts of one test set; unchanged without names.

    names: test sets, of which the scorecard must have exactly one. Raises NoScorecard.
    """
    if not names:
        return card
    own = [name for name in names if name in card.tests]
    if len(own) != 1:
        raise NoScorecard(
            f"{card.checkpoint} on {card.benchmark}: --metric must name one of its test sets: "
            f"{', '.join(card.tests) or 'it has none; leave --metric out'}"
        )
    samples = [
        each.model_copy(update={"verdict": "AC"}) if each.sets[own[0]] else each
        for each in card.samples
    ]
    harness = f"{card.harness_version}, {own[0]}"
    return card.model_copy(update={"samples": tuple(samples), "harness_version": harness})


def is_path(name: str) -> bool:
    """Return whether a file or folder of this name exists."""
    return Path(name).expanduser().exists()


def short(path: str) -> str:
    """Return the file's name without folder and endings."""
    return Path(path).name.removesuffix(".json").removesuffix(".scorecard").removesuffix(".eval")
