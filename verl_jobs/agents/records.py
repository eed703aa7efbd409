"""Training records of the Reviewer: failing programs, reports, and one-sentence comments.

In: problems with a solution. Out: `Review`s and their parquet, whose column `messages` is read by
verl's SFT trainer. The programs are mutants of a correct solution
(problems/verification/mutants.py) and flawed demonstrations, and the comment names the first line
that differs from the solution; or both are a person's. Held-out and gated problems are not used.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts.parsing import parse
from artifacts.section import Section
from problems.columns import ProblemError
from problems.parquet_file import reading_parquet
from problems.prompt import prompt_text
from problems.schema import Problem, write_table
from problems.typed_rows import typed_rows
from problems.verification.mutants import mutants
from sandbox.protocol import Verdict
from sandbox.reading import near
from verl_jobs.agents.conversation import (
    Conversation,
    Message,
    ProgramAttempt,
    begin,
    comment_of,
    reviewer_prompt,
)
from verl_jobs.agents.play import Reports

MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("program", pa.string()),
        ("report", pa.string()),  # the Executor's text
        ("comment", pa.string()),
        ("messages", pa.list_(MESSAGE)),  # the Reviewer's prompt, and the comment as its reply
    ]
)
FROM = ("demonstrations", "train")  # splits that may be trained on


@dataclass(frozen=True)
class Review:
    """One row."""

    problem_id: str
    program: str
    report: str
    comment: str
    messages: list[Message]


def reviews(problems: Sequence[Problem], executor: Reports, broken: int = 2) -> list[Review]:
    """Return a review of each program that fails a visible test, in the order of the problems.

    The programs are each problem's demonstration and up to `broken` mutants of its solution.
    """
    pairs = [
        (problem, program)
        for problem in problems
        if _is_usable(problem)
        for program in _programs(problem, broken)
    ]
    return _records(
        [
            (problem, program, difference(program, problem.solutions[0]) or "")
            for problem, program in pairs
        ],
        executor,
    )


class HumanReview(Section):
    """A person's comment on a program for a problem of the home."""

    problem_id: str
    program: str
    comment: str


def human_reviews(
    path: Path, problems: Sequence[Problem], executor: Reports
) -> tuple[list[Review], Counter[str]]:
    """Return people's reviews as records, and how many are left out by reason.

    Raises ProblemError for a row that is no review, or of an unknown problem.
    """
    known, left_out = {problem.problem_id: problem for problem in problems}, Counter[str]()
    commented = []
    for place, row in typed_rows(path, HumanReview):
        problem = known.get(row.problem_id)
        if problem is None:
            raise ProblemError(
                f"no problem {row.problem_id!r}{near(row.problem_id, known)}",
                "name a problem of this home (`ratchet data show`)",
                place,
            )
        comment = comment_of(row.comment)
        if not _may_train(problem):
            left_out["held out, gated or without visible tests"] += 1
        elif not comment:
            left_out["no comment before the first block of code"] += 1
        else:
            commented.append((problem, row.program, comment))
    records = _records(commented, executor)
    left_out["the program fails no visible test"] += len(commented) - len(records)
    return records, +left_out


def _records(commented: Sequence[tuple[Problem, str, str]], executor: Reports) -> list[Review]:
    """Return a record of each program that fails a visible test and has a comment."""
    conversations = [_conversation(problem, program) for problem, program, _ in commented]
    findings = executor.findings(conversations) if conversations else []
    records = []
    for (problem, program, comment), conversation, finding in zip(
        commented, conversations, findings, strict=True
    ):
        if not comment or finding.verdict in (Verdict.AC, Verdict.INFRA) or not finding.total:
            continue
        conversation.attempts.append(ProgramAttempt(program, finding))
        messages = [*reviewer_prompt(conversation), {"role": "assistant", "content": comment}]
        records.append(Review(problem.problem_id, program, finding.text, comment, messages))
    return records


def _is_usable(problem: Problem) -> bool:
    return _may_train(problem) and bool(problem.solutions)


def _may_train(problem: Problem) -> bool:
    return problem.split in FROM and not problem.gated and problem.visible_tests > 0


def _programs(problem: Problem, broken: int) -> list[str]:
    demonstration = problem.extra.get("demonstration")
    mutant_sources = (
        [mutant.source for mutant in mutants(problem.solutions[0], broken, problem.entry_point)]
        if broken
        else []
    )
    return [*([demonstration] if isinstance(demonstration, str) else []), *mutant_sources]


def _conversation(problem: Problem, program: str) -> Conversation:
    conversation = begin(problem, [{"role": "user", "content": prompt_text(problem)}])
    conversation.messages.append({"role": "assistant", "content": program})
    return conversation


def difference(program: str, solution: str) -> str | None:
    """Describe the first line in which a program differs from a correct one.

    None if they are the same, or if one of them is not valid Python.
    """
    try:
        wrong, right = (ast.unparse(parse(source)).splitlines() for source in (program, solution))
    except (SyntaxError, ValueError, RecursionError):
        return None
    changes = difflib.SequenceMatcher(None, wrong, right, autojunk=False).get_opcodes()
    kind, at, _, other, _ = next(
        (change for change in changes if change[0] != "equal"), ("equal", 0, 0, 0, 0)
    )
    match kind:
        case "replace":
            return f"`{wrong[at].strip()}` should be `{right[other].strip()}`."
        case "delete":
            return f"`{wrong[at].strip()}` should not be there."
        case "insert":
            return f"`{right[other].strip()}` is missing."
    return None


def write_reviews(records: Sequence[Review], path: Path) -> None:
    """Write the parquet under a temporary name, then rename it."""
    write_table(pa.Table.from_pylist([asdict(review) for review in records], schema=SCHEMA), path)


def read_reviews(path: Path) -> list[Review]:
    """Read reviews. Raises FileNotFoundError, and ValueError that names missing columns."""
    with reading_parquet(str(path)):
        table = pq.read_table(path, partitioning=None)
    if missing := [name for name in SCHEMA.names if name not in table.schema.names]:
        raise ValueError(
            f"{path}: no review records, columns {', '.join(missing)} are missing: create them "
            "with `ratchet reviewer records`"
        )
    return [Review(**row) for row in table.select(SCHEMA.names).to_pylist()]
