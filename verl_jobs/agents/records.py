"""Training records of the Reviewer: failing programs, reports, and one-sentence comments.

In: problems with a solution. Out: `Review`s and their parquet, whose column `messages` is read by
verl's SFT trainer. The programs are mutants of a correct solution
(problems/verification/mutants.py) and flawed demonstrations. The comment names the first line that
differs from the solution. Held-out and gated problems are not used.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from problems.parquet_file import reading_parquet
from problems.prompt import prompt_text
from problems.schema import Problem, write_table
from problems.syntax import parse
from problems.verification.mutants import mutants
from sandbox.protocol import Verdict
from verl_jobs.agents.conversation import (
    Conversation,
    Message,
    ProgramAttempt,
    begin,
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
    conversations = [_conversation(problem, program) for problem, program in pairs]
    findings = executor.findings(conversations) if conversations else []
    records = []
    for (problem, program), conversation, finding in zip(
        pairs, conversations, findings, strict=True
    ):
        comment = difference(program, problem.solutions[0])
        if comment is None or finding.verdict in (Verdict.AC, Verdict.INFRA) or not finding.total:
            continue
        conversation.attempts.append(ProgramAttempt(program, finding))
        messages = [*reviewer_prompt(conversation), {"role": "assistant", "content": comment}]
        records.append(Review(problem.problem_id, program, finding.text, comment, messages))
    return records


def _is_usable(problem: Problem) -> bool:
    return (
        problem.split in FROM
        and not problem.gated
        and bool(problem.solutions)
        and problem.visible_tests > 0
    )


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
