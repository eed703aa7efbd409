"""The columns of a dataset of problems, as Dagster's pages show them."""

from __future__ import annotations

import dagster as dg

from problems.columns import COLUMNS
from problems.schema import problem_schema

PROBLEM_COLUMNS = {
    "dagster/column_schema": dg.TableSchema(
        [
            dg.TableColumn(
                field.name,
                str(field.type),
                COLUMNS[field.name].expected if field.name in COLUMNS else None,
            )
            for field in problem_schema()
        ]
    )
}
