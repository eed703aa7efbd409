"""The user's own problems: JSON, JSONL or parquet whose keys are the columns of the schema.

Needed: `problem_id` (or `id`), `statement`, `style`, `tests`, and for style call `entry_point`. Everything else has its default;
unknown keys are kept in `extra`. Values that JSON lacks are tagged, e.g. `{"$tuple": [1, 2]}` (problems/encoding.py).
"""

from __future__ import annotations

from problems.encoding import decode
from problems.record import ProblemError
from problems.schema import Problem, from_record, from_row
from problems.sources.source import Row, Source


def own(name: str) -> Source:
    """A source of that name over the user's files; ids get `name/` in front unless they have it."""

    def convert(row: Row, where: str) -> Problem:
        record = {key: value for key, value in row.items() if key != "id"}
        key = row.get("problem_id", row.get("id"))
        if key is None:
            raise ProblemError("column problem_id is missing", "add it: text, not empty, of each problem its own", where)
        record["problem_id"] = str(key) if str(key).startswith(f"{name}/") else f"{name}/{key}"
        record["source"] = name
        if isinstance(row.get("tests"), list) and all(isinstance(test, str) for test in row["tests"]):
            return from_row(record, where)  # written by write_parquet
        for column in ("tests", "extra"):
            if column in record:
                try:
                    record[column] = decode(record[column])
                except (ValueError, RecursionError) as error:
                    raise ProblemError(f"column {column}: {error}", "see problems/encoding.py for the tags", where) from error
        return from_record(record, where)

    return Source(name, "problems of your own, in the columns of the schema", convert)
