"""A Markdown table. Without Dagster, so that the command line starts quickly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(
        [*lines, *("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows)]
    )


def _cell(value: object) -> str:
    text = str(value).replace("|", "\\|")
    text = text if len(text) <= 240 else text[:239] + "…"
    return "<br>".join(text.splitlines())
