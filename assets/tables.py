"""Problems and what became of them, as tables, numbers and Markdown for Dagster's pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg

from artifacts.store import Artifact
from assets.markdown import markdown
from problems.dataset.card import example
from problems.funnel import Stage, funnel, read_removed
from problems.schema import problem_schema, read_columns
from problems.stored import FILE, stored_problems

MEANINGS = {
    "problem_id": "Name of the problem: its source and a key, unique over all sources",
    "source": "Source that the problem was read from",
    "statement": "What the program must do, as the model reads it",
    "style": "How a program is tested, such as by calls, assertions or standard input",
    "tests": "Tests that decide whether a program is correct, each as JSON",
    "entry_point": "Name of the function or class that the tests use",
    "starter_code": "Trusted code that is given with the statement: imports, helpers, a signature",
    "solutions": "Programs that the source gives as correct",
    "visible_tests": "How many of the first tests the statement may show",
    "limits": "Time, memory and output that a program may use",
    "tolerance": "Greatest difference at which two numbers are still equal",
    "tags": "Topics, functions and difficulty that the source gives",
    "split": "Use of the problem: demonstrations, train, validation or heldout",
    "licence": "Licence of the problem's text and programs",
    "gated": "Whether it belongs to a reported benchmark, so that it is never trained on",
    "extra": "What else the source knows about the problem, as JSON",
    "compare": "How outputs are compared; exact if empty",
    "checker": "Program that judges outputs in place of a comparison, if there is one",
}
PROBLEM_COLUMNS = {
    "dagster/column_schema": dg.TableSchema(
        [
            dg.TableColumn(field.name, str(field.type), MEANINGS[field.name])
            for field in problem_schema()
        ]
    )
}
FUNNEL = dg.TableSchema(
    [
        dg.TableColumn("stage", "string", "Step that the problems pass through"),
        dg.TableColumn("in", "int", "Problems before the step"),
        dg.TableColumn("out", "int", "Problems after the step"),
        dg.TableColumn("removed", "int", "Problems that the step removed"),
    ]
)


def removing_stage(artifact: Artifact, *, beside: bool = False) -> Stage:
    """Return what a stored dataset removed, by its manifest and its list."""
    name = artifact.manifest.name.removesuffix("_problems")
    return replace(
        Stage.of(name, artifact.manifest.facts, read_removed(artifact.path)), beside=beside
    )


def dataset_figures(
    artifact: Artifact, stages: Sequence[Stage], picture: str = ""
) -> dict[str, Any]:
    """Return the metadata of a stored dataset.

    stages: of the funnel, its own last. picture: Markdown, above the reasons.
    """
    return {
        "dagster/row_count": stages[-1].went_out,
        **funnel_figures(stages, picture),
        "top_reasons": dg.MetadataValue.md(top_reasons(stages[-1])),
        "examples": dg.MetadataValue.md(examples(artifact.path)),
    }


def examples(folder: Path, count: int = 5) -> str:
    """Show a few problems, spread over the dataset, as its card does.

    Each is a section with blocks of code: in a table Dagster joins the lines of a program.
    """
    stored = stored_problems(folder)
    return "\n".join(map(example, stored[:: max(1, len(stored) // count)][:count]))


def funnel_figures(stages: Sequence[Stage], picture: str = "") -> dict[str, Any]:
    """Return what the stages removed: numbers of the last one, a table, and reasons with examples.

    Dagster plots the numbers over the materializations. picture: Markdown, above the reasons.
    """
    last = stages[-1]
    rows = [
        dg.TableRecord(
            {
                "stage": stage.name,
                "in": stage.came_in,
                "out": stage.went_out,
                "removed": stage.removed_count,
            }
        )
        for stage in stages
    ]
    return {
        "problems_in": last.came_in,
        "problems_out": last.went_out,
        "problems_removed": last.removed_count,
        "funnel": dg.MetadataValue.table(rows, FUNNEL),
        "removed": dg.MetadataValue.md("\n\n".join(filter(None, (picture, funnel(stages))))),
    }


def top_reasons(stage: Stage, most: int = 5) -> str:
    """Return the most frequent reasons, short enough to be visible without a click."""
    if not stage.removed_count:
        return "none removed"
    return markdown(("reason", "problems"), stage.reasons.most_common(most))


def by_split(folder: Path) -> str:
    rows = read_columns(folder / FILE, ["source", "gated", "split"])
    counts = Counter((row["source"], "gated" if row["gated"] else row["split"]) for row in rows)
    return markdown(
        ("source", "part", "problems"), [(*key, count) for key, count in sorted(counts.items())]
    )
