"""Read a model's samples for the problems of a source: JSON lines with `problem_id`, `completion`.

A completion is a whole program, or a text with one in a fence. A problem keeps its samples in
`extra["samples"]`: verification runs them, and a problem without a reference needs some that agree.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from problems.columns import ProblemError
from problems.reading.own import own
from problems.reading.prose import program
from problems.reading.rows import local_rows
from problems.reading.source import LoadedRows, Rejected, text

NAME = "samples"


def with_samples(loaded: LoadedRows, path: Path) -> LoadedRows:
    """Return the source with the samples of the file; a row of no problem is rejected.

    Ids may lack the source's name. Raises FileNotFoundError and ProblemError if there is nothing to
    read.
    """
    problems = {problem.problem_id: problem for problem in loaded.problems}
    samples, rejected = dict[str, list[str]](), list[Rejected]()
    for where, row in local_rows(own(NAME), path):
        try:
            if isinstance(row, ProblemError):
                raise row
            key, completion = text(row, "problem_id", where), text(row, "completion", where)
            known = next((each for each in (key, f"{loaded.source}/{key}") if each in problems), "")
            if not known:
                raise ProblemError(
                    f"{loaded.source} has no problem {key!r}", "sample the source again", where
                )
            samples.setdefault(known, []).append(program(completion))
        except ProblemError as error:
            rejected.append(Rejected(where, error.reason, error.fix))
    return LoadedRows(
        loaded.source,
        [
            replace(problem, extra=problem.extra | {"samples": [*problem.samples, *samples[key]]})
            if key in samples
            else problem
            for key, problem in problems.items()
        ],
        [*loaded.rejected, *rejected],
    )
