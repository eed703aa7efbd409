"""The Executor: runs each conversation's last program on the visible tests, and reports the result.

It uses rules only, no model. Its problems have no hidden tests (conversation.py, `begin`), so it
cannot leak any.
"""

from __future__ import annotations

from collections.abc import Sequence

from artifacts.parsing import parse
from problems.prompt import shown_test
from problems.schema import Problem
from rewards.starter import program_of
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Runs, run_all
from verl_jobs.agents.conversation import Conversation, ExecutorResult, in_one_line, unmarked

WIDEST, LONGEST_TEST = 160, 600  # maximum characters of a result, and of a test
WORDS = {
    Verdict.RE: "It fails: ", Verdict.TLE: "It takes too long. ",
    Verdict.MLE: "It takes too much memory. ", Verdict.OLE: "It prints too much. ",
    Verdict.CE: "It is no Python: ",
}  # fmt: skip


class Executor:
    """Runs programs. `sandbox` must be open.

    In training it is the scorer, which replaces a broken sandbox (rewards/scorer.py).
    """

    def __init__(self, sandbox: Runs) -> None:
        self.sandbox = sandbox

    def findings(self, conversations: Sequence[Conversation]) -> list[ExecutorResult]:
        """Return a finding on the last message of each, in order; all programs run as one batch."""
        programs = [
            program_of(each.problem, each.messages[-1]["content"]) for each in conversations
        ]
        testable = [
            at for at, conversation in enumerate(conversations) if conversation.problem.tests
        ]
        jobs = [conversations[at].problem.job(programs[at], f"turn/{at}") for at in testable]
        reports = dict(zip(testable, run_all(self.sandbox, jobs), strict=True))
        return [
            finding_of(conversation.problem, reports[at])
            if at in reports
            else read_only(programs[at])
            for at, conversation in enumerate(conversations)
        ]


def finding_of(problem: Problem, report: Report) -> ExecutorResult:
    """Describe a report on the visible tests in words.

    For INFRA the text is never passed on: such a conversation ends.
    """
    passed, total = report.passed, report.total
    if report.verdict is Verdict.INFRA:
        return ExecutorResult(report.verdict, passed, total, "The program could not be run.")
    if report.verdict is Verdict.AC:
        return ExecutorResult(
            report.verdict,
            total,
            total,
            f"All {total} examples pass." if total > 1 else "The example passes.",
        )
    first = next(
        (at for at, test in enumerate(report.tests) if test.verdict is not Verdict.AC), None
    )
    if first is None:  # every test passed, but a limit on all of them did not hold
        return ExecutorResult(
            report.verdict,
            min(passed, total - 1),
            total,
            f"{WORDS.get(report.verdict, '')}{in_one_line(report.detail, WIDEST)}".strip(),
        )
    result = report.tests[first]
    test = (
        result.name
        if problem.kind.many_rows
        else shown_test(problem, problem.tests[first])[:LONGEST_TEST]
    )
    outcome = f"{WORDS.get(result.verdict, '')}{in_one_line(result.detail, WIDEST)}".strip()
    lines = [
        f"{passed} of {total} examples pass. This one fails:",
        unmarked(test),
        *([outcome] if outcome else []),
    ]
    return ExecutorResult(report.verdict, passed, total, "\n".join(lines))


def read_only(program: str) -> ExecutorResult:
    """Return a finding for a problem without examples: only whether the program is valid Python."""
    try:
        parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return ExecutorResult(
            Verdict.CE, 0, 0, f"{WORDS[Verdict.CE]}{in_one_line(str(error), WIDEST)}"
        )
    return ExecutorResult(Verdict.WA, 0, 0, "There is no example to run it on.")
