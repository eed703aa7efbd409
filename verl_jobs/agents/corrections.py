"""Demonstrations of conversations, for the warm-up.

A correction has a flawed program, the Executor's report on it, and a correct program. A use of the
tool has a call, its output, and a correct program.
"""

from __future__ import annotations

from collections.abc import Sequence

from problems.demonstrations import demonstration
from problems.prompt import prompt_messages
from problems.schema import Problem
from sandbox.styles.source_text import call_text
from verl_jobs.agents.conversation import Message, begin, correction_request
from verl_jobs.agents.play import Reports
from verl_jobs.agents.tool import PythonTool


def corrections(problems: Sequence[Problem], executor: Reports) -> list[tuple[list[Message], str]]:
    """Return a correction for each demonstration that fails a visible test.

    A correction is (conversation so far, correct program). Raises KeyError for a problem without a
    demonstration.
    """
    conversations = [begin(problem, prompt_messages(problem)) for problem in problems]
    for conversation, problem in zip(conversations, problems, strict=True):
        conversation.messages.append({"role": "assistant", "content": demonstration(problem)})
    rows = []
    for conversation, problem, finding in zip(
        conversations,
        problems,
        executor.findings(conversations) if conversations else [],
        strict=True,
    ):
        if finding.total and not finding.solved:
            conversation.add_attempt(finding)
            conversation.add_request(correction_request(finding))
            rows.append((conversation.messages, problem.solutions[0]))
    return rows


def tool_uses(problems: Sequence[Problem], tool: PythonTool) -> list[tuple[list[Message], str]]:
    """Return a call, and the answer after it, for each demonstration of style call with an example.

    The call prints what the demonstration returns for the example; the answer is the correct
    program.
    """
    shown = [each for each in problems if each.style == "call" and each.visible_tests]
    note = tool.request(native=False)
    chats = [begin(problem, prompt_messages(problem), note) for problem in shown]
    rows = list[tuple[list[Message], str]]()
    for chat, problem in zip(chats, shown, strict=True):
        example = call_text(str(problem.entry_point), problem.tests[0])
        program = f"{demonstration(problem)}\nprint({example})"
        call = f"```python run\n{program}\n```"
        rows.append(([*chat.messages], call))
        chat.messages.append({"role": "assistant", "content": call})
    tool.run(chats)
    answers = zip(chats, shown, strict=True)
    return rows + [(chat.messages, each.solutions[0]) for chat, each in answers if not chat.ended]
