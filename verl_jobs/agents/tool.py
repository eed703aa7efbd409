"""The Python tool: programs that the policy runs before it answers.

In: conversations whose last message may be a call. Out: a message with the program's output. The
sandbox runs a program as a script, with the problem's limits and packages and without its tests. A
call is a block that begins with ```python run, or Hermes' `<tool_call>` where the chat template
teaches it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from rewards.blocks import after_thought
from sandbox.protocol import Job, Report, StdioTest, Verdict
from sandbox.sandbox import Runs, run_all
from verl_jobs.agents.conversation import LOST, Conversation, unmarked
from verl_jobs.agents.executor import WORDS
from verl_jobs.agents.stream import TAG

END_TAG = "</tool_call>"
_OPEN = re.compile(r"^```python run[ \t]*\n", re.MULTILINE)
_CLOSE = re.compile(r"^```", re.MULTILINE)
UNREADABLE = 'The call holds no program, as {"name": "python", "arguments": {"code": ...}} does.'


def called(text: str) -> str | None:
    """Return the first program that a message calls for; "" if it holds none, None without a call.

    What follows the call was written without its output and is ignored.
    """
    text = after_thought(text)
    before, tag, call = text.partition(TAG)
    if fence := _OPEN.search(before):
        rest = text[fence.end() :]
        return rest[: end.start()] if (end := _CLOSE.search(rest)) else rest
    if not tag:
        return None
    try:
        read = json.loads(call.partition(END_TAG)[0])
        name, code = read["name"], read["arguments"]["code"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return code if name == "python" and isinstance(code, str) else ""


class PythonTool:
    """Runs the calls of conversations, at most `calls` of each. `sandbox` must be open.

    output_bytes: maximum of an output that is passed on. on_run: called after each call.
    """

    def __init__(
        self,
        sandbox: Runs,
        calls: int,
        output_bytes: int,
        on_run: Callable[[Conversation], None] | None = None,
    ) -> None:
        self.sandbox, self.calls, self.output_bytes = sandbox, calls, output_bytes
        self.on_run = on_run

    def request(self, native: bool) -> str:
        """Return the sentences of the prompt about the tool.

        native: the chat template describes the call.
        """
        call = "a call" if native else "such a block"
        how = (
            f"You can call the tool at most {_times(self.calls)} before you answer."
            if native
            else f"You can run Python at most {_times(self.calls)} before you answer: end a "
            "message with a program in a block that begins with ```python run."
        )
        return f"{how} A message without {call} is your answer, and so is the last that fits."

    def run(self, conversations: Sequence[Conversation]) -> list[Conversation]:
        """Append a result to each conversation whose last message is a call; return these.

        All programs run as one batch. A conversation whose call the sandbox lost ends.
        """
        calls = [
            (conversation, program)
            for conversation in conversations
            if conversation.calls < self.calls
            and (program := called(conversation.messages[-1]["content"])) is not None
        ]
        jobs = [self._job(conversation, program) for conversation, program in calls]
        reports = run_all(self.sandbox, jobs) if jobs else []
        for (conversation, program), report in zip(calls, reports, strict=True):
            if report.verdict is Verdict.INFRA:
                conversation.ended = LOST
                continue
            conversation.calls += 1
            native = TAG in conversation.messages[-1]["content"]
            conversation.messages.append(
                {
                    "role": "tool" if native else "user",
                    "content": self._result(report, program, self.calls - conversation.calls),
                }
            )
            if self.on_run:
                self.on_run(conversation)
        return [conversation for conversation, _ in calls if not conversation.ended]

    def _job(self, conversation: Conversation, program: str) -> Job:
        problem = conversation.problem
        return Job(
            f"call/{conversation.calls}", program, "stdio", (StdioTest("", ""),),
            limits=problem.limits, packages=problem.packages, output_bytes=self.output_bytes,
        )  # fmt: skip

    def _result(self, report: Report, program: str, left: int) -> str:
        detail = "".join(
            letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}"
            for letter in unmarked(report.tests[0].detail)
        ).strip()
        if not program:
            shown = UNREADABLE
        elif report.verdict is Verdict.AC:
            shown = "Nothing was printed."
        elif report.verdict in (Verdict.WA, Verdict.RE):
            shown = f"Output:\n{detail}"
        else:
            shown = f"{WORDS[report.verdict].strip()}\n{detail}"
        rest = f"You can run Python {_times(left)} more." if left else "Now answer."
        return f"{shown}\n{rest}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
