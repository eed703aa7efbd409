"""Problems and funnels on Dagster's pages."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from assets.promotion import HISTORY
from assets.tables import FUNNEL, MEANINGS, examples, funnel_figures
from problems.funnel import Removed, Stage
from problems.prompt import shown_test
from problems.schema import problem_schema, write_parquet
from problems.sources import simple


def test_an_example_shows_a_test_and_a_solution_as_programs(tmp_path: Path) -> None:
    problem = next(each for each in simple.generate() if "\n" in each.solutions[0])
    write_parquet([problem], tmp_path / "problems.parquet")
    text = examples(tmp_path)
    assert f"\n{problem.solutions[0]}\n" in text
    assert shown_test(problem, problem.tests[0]) in text


def test_the_funnel_is_numbers_of_its_last_stage() -> None:
    stages = [
        Stage("read", 5, 4, (Removed("a", "row rejected"),)),
        Stage("verified", 4, 2, (Removed("b", "weak"), Removed("c", "weak"))),
    ]
    figures = funnel_figures(stages)
    assert [figures[f"problems_{name}"] for name in ("in", "out", "removed")] == [4, 2, 2]
    assert isinstance(figures["funnel"], dg.TableMetadataValue)
    assert [record.data["removed"] for record in figures["funnel"].records] == [1, 2]


def test_every_column_of_a_problem_has_its_meaning_and_no_other() -> None:
    assert list(MEANINGS) == problem_schema().names


def test_every_column_of_a_table_says_what_it_means() -> None:
    columns = [*HISTORY.columns, *FUNNEL.columns]
    assert [column.name for column in columns if not column.description] == []
