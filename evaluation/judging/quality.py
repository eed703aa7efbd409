"""Quality of the programs that pass: style as the reward sees it, complexity, length against the
reference; and its trend over versions.

In: samples of a scorecard and reference programs. Out: a `Quality`. Failing programs are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median

from artifacts.parsing import parse
from evaluation.promotion.rate import Rate, points
from evaluation.scorecard import Scorecard, ScoredSample
from rewards.components.style import readability
from rewards.lint import lint

COLUMNS = {  # field of `Quality` -> its key in a scorecard's measured figures, its format
    "programs": ("quality_answers", ".0f"),
    "style": ("quality_style", ".3f"),
    "offences": ("quality_offences", ".2f"),
    "complexity": ("quality_complexity", ".2f"),
    "length": ("quality_length", ".2f"),
}


@dataclass(frozen=True)
class Quality:
    """Figures over the passing programs that the linter can parse."""

    programs: int
    style: float  # mean of the reward's value, in (0, 1]
    offences: float  # mean number for each program
    complexity: float  # mean of the most complex function's (McCabe)
    # Median ratio of the lengths in characters of program and reference, without layout and
    # comments; None without references.
    length: float | None


def quality(samples: Iterable[ScoredSample], references: Mapping[str, str]) -> Quality | None:
    """Measure passing programs. references: a program for each task. None if no sample passes.
    Raises OSError if ruff is missing.
    """
    passing = [sample for sample in samples if sample.verdict == "AC"]
    parsed = [
        (sample, findings)
        for sample, findings in zip(
            passing, lint([sample.program for sample in passing]), strict=True
        )
        if findings
    ]
    if not parsed:
        return None
    values = [readability(findings) for _, findings in parsed]
    ratios = [
        size(sample.program) / base
        for sample, _ in parsed
        if (base := size(references.get(sample.task_id, "")))
    ]
    return Quality(
        programs=len(parsed),
        style=fmean(values),
        offences=fmean(findings.offences for _, findings in parsed),
        complexity=fmean(findings.complexity for _, findings in parsed),
        length=median(ratios) if ratios else None,
    )


def size(program: str) -> int:
    """Return the program's length in one normal form: without comments and blank lines, with one
    layout. 0 for invalid Python.
    """
    try:
        return len(ast.unparse(parse(program)))
    except (SyntaxError, ValueError, RecursionError):
        return 0


def measured(samples: Iterable[ScoredSample], references: Mapping[str, str]) -> dict[str, float]:
    """Return the figures that a scorecard keeps with the measured times: ruff's next version may
    find other things.
    """
    figures = quality(samples, references)
    return (
        {
            COLUMNS[name][0]: float(value)
            for name, value in asdict(figures).items()
            if value is not None
        }
        if figures
        else {}
    )


HEAD = ("checkpoint", "benchmark", "pass@1", "passing", "style", "offences", "complexity", "length")


def trend(cards: Sequence[Scorecard]) -> list[tuple[str, ...]]:
    """Return one row for each scorecard, in their order, under HEAD; unmeasured cells are empty."""
    return [
        (
            card.checkpoint,
            card.benchmark,
            f"{points(Rate.of(card).share)} %",
            *(
                format(card.measured[key], form) if key in card.measured else ""
                for key, form in COLUMNS.values()
            ),
        )
        for card in cards
    ]
