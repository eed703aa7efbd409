"""Problems as Markdown tables for Dagster's pages. Imports no Dagster: the command line uses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from problems.funnel import Stage
from problems.schema import Problem


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(
        [*lines, *("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows)]
    )


def examples(problems: Sequence[Problem], count: int = 5) -> str:
    """Show a few problems, spread over the dataset: statement, first test, first solution."""
    step = max(1, len(problems) // count)
    rows = [
        (
            problem.problem_id,
            problem.statement,
            problem.tests[0] if problem.tests else "",
            problem.solutions[0] if problem.solutions else "",
        )
        for problem in problems[::step][:count]
    ]
    return markdown(("problem", "statement", "first test", "first solution"), rows)


def top_reasons(stage: Stage, most: int = 5) -> str:
    """Return the most frequent reasons, short enough to be visible without a click."""
    return (
        markdown(
            ("reason", "problems"),
            [(reason, str(count)) for reason, count in stage.reasons.most_common(most)],
        )
        if stage.removed
        else "none removed"
    )


def by_split(problems: Sequence[Problem]) -> str:
    counts = Counter(
        (problem.source, "gated" if problem.gated else problem.split) for problem in problems
    )
    return markdown(
        ("source", "part", "problems"), [(*key, count) for key, count in sorted(counts.items())]
    )


def _cell(value: object) -> str:
    text = str(value).replace("|", "\\|")
    text = text if len(text) <= 240 else text[:239] + "…"
    return "<br>".join(text.splitlines())
