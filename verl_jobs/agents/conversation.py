"""One conversation about one problem, and every word of it that is not a model's own. Pure data and functions.

    user       the problem, with its examples
    assistant  a program                                   the Generator
    user       how many examples pass, the first that fails  the Executor
               what is wrong                               the Reviewer, if there is one
               the request to mend it
    assistant  a program ...

Who plays the Reviewer with the Generator's own voice does it here too: a question and a comment between the report and the request.
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
LONGEST_COMMENT, LONGEST_PROGRAM = 400, 8000  # characters that are passed on
SOLVED, TURNS, ROOM, LOST, SILENT = (
    "all examples pass",
    "the turns are used up",
    "no room is left",
    "the sandbox failed",
    "nothing can be reported",
)
UNANSWERED = "an endpoint gave no answer"


@dataclass(frozen=True)
class Finding:
    """What the Executor saw: of how many visible tests how many pass, and that in words."""

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
class Attempt:
    """A program of the Generator, what the Executor found, and what the Reviewer said of it."""

    answer: str
    finding: Finding
    comment: str = ""


@dataclass
class Conversation:
    """`problem` holds no hidden test and no solution: see `begin`. `ended` says why it is over, "" while it goes on."""

    problem: Problem
    messages: list[Message]
    attempts: list[Attempt] = field(default_factory=list)
    ended: str = ""
    stream: Stream | None = None  # its tokens, where the policy that is trained writes it

    def hear(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def commented(self, comment: str) -> None:
        """Notes what was said of the last attempt."""
        self.attempts[-1] = replace(self.attempts[-1], comment=comment)


def begin(problem: Problem, messages: Sequence[Message]) -> Conversation:
    """A conversation that opens with these messages. Hidden tests, solutions and whatever else could give them away stay outside."""
    seen = replace(
        problem,
        tests=problem.tests[: problem.visible_tests],
        solutions=(),
        extra=_packages(problem),
    )
    return Conversation(seen, [dict(message) for message in messages])


def _packages(problem: Problem) -> dict[str, tuple[str, ...]]:
    return {"packages": problem.packages} if problem.packages else {}


def mend_request(finding: Finding, comment: str = "") -> str:
    return "\n".join([finding.text, *([f"Review: {comment}"] if comment else []), MEND])


def review_request(finding: Finding) -> str:
    """What the Generator is asked when it reviews itself, inside the conversation."""
    return f"{finding.text}\n{REVIEW}"


def reviewer_question(conversation: Conversation) -> list[Message]:
    """What a Reviewer of its own is asked: the problem, the last program, what the Executor found."""
    last = conversation.attempts[-1]
    program = unmarked(extract_code(last.answer))[:LONGEST_PROGRAM].strip("\n")
    told = f"A program for this problem:\n```python\n{program}\n```\n{last.finding.text}\n{REVIEW}"
    return [
        *(
            {"role": m["role"], "content": m["content"]}
            for m in conversation.messages[:-2]
            if m["role"] == "system"
        ),
        _joined(conversation, told),
    ]


def _joined(conversation: Conversation, told: str) -> Message:
    asked = next(
        message["content"] for message in conversation.messages if message["role"] == "user"
    )
    return {"role": "user", "content": f"{asked}\n\n{told}"}


def comment_of(text: str) -> str:
    """A reply as one line of comment; programs in it are left out, for the Generator shall write its own."""
    return in_one_line(text.split("```")[0], LONGEST_COMMENT)


def in_one_line(text: str, widest: int) -> str:
    """Text of a program or a model, fit to be quoted: one line, printable, no longer than this."""
    line = unmarked(
        "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    )
    return line if len(line) <= widest else line[: widest - 1] + "…"


def unmarked(text: str) -> str:
    """Without what a chat template would take for the end of a message: nobody speaks in another's name by printing `<|im_end|>`."""
    return text.replace("<|", "< |")
