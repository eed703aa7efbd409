"""One conversation about one problem, and all of its text that no model wrote.

Pure data and functions.

    user       the problem, with its examples
    assistant  a program                                     the Generator
    user       how many examples pass, the first that fails  the Executor
               what is wrong                                 the Reviewer, if there is one
               the request to correct it
    assistant  a program ...

If the Generator reviews itself, a review prompt and its comment come between report and request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from problems.schema import Problem
from rewards.extraction import extract_code
from sandbox.protocol import Verdict

if TYPE_CHECKING:
    from verl_jobs.agents.stream import Stream

Message = dict[str, str]
REVIEW = "Say in one sentence what is wrong with this program."
MEND = "Write the whole program again, mended."
LONGEST_COMMENT, LONGEST_PROGRAM = 400, 8000  # maximum characters that are passed on
SOLVED, TURNS, ROOM, LOST, SILENT = (
    "all examples pass",
    "no turn is left",
    "no tokens are left",
    "the sandbox failed",
    "there is nothing to report",
)
UNANSWERED = "the endpoint did not reply"


@dataclass(frozen=True)
class ExecutorResult:
    """The Executor's result: how many visible tests pass, and the report as text."""

    verdict: Verdict
    passed: int
    total: int
    text: str

    @property
    def share(self) -> float:
        return self.passed / self.total if self.total else 0.0

    @property
    def solved(self) -> bool:
        return self.total > 0 and self.passed == self.total


@dataclass(frozen=True)
class ProgramAttempt:
    """A program of the Generator, the Executor's finding, and the Reviewer's comment."""

    completion: str
    finding: ExecutorResult
    comment: str = ""
    end: int = 0  # tokens of the stream up to its end


@dataclass
class Conversation:
    """A conversation. `problem` has no hidden tests and no solutions: see `begin`.

    `ended`: why the conversation is over, "" while it continues. `calls`: programs that the tool
    ran.
    """

    problem: Problem
    messages: list[Message]
    attempts: list[ProgramAttempt] = field(default_factory=list)
    ended: str = ""
    stream: Stream | None = None  # its tokens, if the trained policy writes it
    calls: int = 0

    def __post_init__(self) -> None:
        self.opening = len(self.messages)  # messages of its prompt

    def add_attempt(self, finding: ExecutorResult) -> None:
        """Record the last message as a program with this finding."""
        end = len(self.stream.tokens) if self.stream else 0
        self.attempts.append(ProgramAttempt(self.messages[-1]["content"], finding, end=end))

    def add_request(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def set_comment(self, comment: str) -> None:
        """Record the comment on the last attempt."""
        self.attempts[-1] = replace(self.attempts[-1], comment=comment)


def begin(problem: Problem, messages: Sequence[Message], note: str = "") -> Conversation:
    """Start a conversation with these messages, and a note at the end of the last.

    The problem's hidden tests, solutions and extras are left out, except for the list of packages.
    """
    visible = replace(
        problem,
        tests=problem.tests[: problem.visible_tests],
        solutions=(),
        extra=_packages(problem),
    )
    chat = [dict(message) for message in messages]
    if note:
        chat[-1]["content"] += f"\n\n{note}"
    return Conversation(visible, chat)


def _packages(problem: Problem) -> dict[str, tuple[str, ...]]:
    return {"packages": problem.packages} if problem.packages else {}


def correction_request(finding: ExecutorResult, comment: str = "") -> str:
    return "\n".join([finding.text, *([f"Review: {comment}"] if comment else []), MEND])


def review_request(finding: ExecutorResult) -> str:
    """Return the prompt for the Generator to review itself, inside the conversation."""
    return f"{finding.text}\n{REVIEW}"


def reviewer_prompt(conversation: Conversation) -> list[Message]:
    """Return the prompt of a separate Reviewer.

    It has the problem, the last program, and the Executor's finding.
    """
    last = conversation.attempts[-1]
    problem = conversation.problem
    program = extract_code(last.completion, problem.entry_point, problem.language)
    program = unmarked(program)[:LONGEST_PROGRAM].strip("\n")
    request = (
        f"A program for this problem:\n```python\n{program}\n```\n{last.finding.text}\n{REVIEW}"
    )
    return [
        *(
            {"role": m["role"], "content": m["content"]}
            for m in conversation.messages[: conversation.opening]
            if m["role"] == "system"
        ),
        _with_request(conversation, request),
    ]


def _with_request(conversation: Conversation, request: str) -> Message:
    statement = conversation.messages[conversation.opening - 1]["content"]
    return {"role": "user", "content": f"{statement}\n\n{request}"}


def comment_of(text: str) -> str:
    """Return a reply as a one-line comment, without programs: the Generator must write its own."""
    return in_one_line(text.split("```")[0], LONGEST_COMMENT)


def in_one_line(text: str, widest: int) -> str:
    """Make the text of a program or a model quotable.

    The result is one printable line of at most `widest` characters.
    """
    line = unmarked(
        "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    )
    return line if len(line) <= widest else line[: widest - 1] + "…"


def unmarked(text: str) -> str:
    """Break up the special tokens of chat templates.

    So no text can speak in another's name by printing `<|im_end|>`.
    """
    return text.replace("<|", "< |")
