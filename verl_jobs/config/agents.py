"""Settings of multi-turn conversations: the participants and the length limits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from artifacts.section import Section


class Agents(Section):
    """Multi-turn conversations instead of single completions.

    The Generator writes a program, the Executor reports its test results, the Reviewer comments,
    and the Generator writes a corrected program.
    """

    turns: PositiveInt = 1
    """Maximum number of programs in a conversation; 1: a single completion, no conversation."""
    tokens: PositiveInt = 336
    """Maximum tokens of a conversation after its first prompt, including messages to the policy.
    Together with the prompt they must fit the model's context.
    """
    tool_calls: NonNegativeInt = 0
    """Maximum number of programs that the policy may run in a conversation to see their output,
    before it answers; 0: it has no tool.
    """
    tool_output: PositiveInt = 200
    """Maximum bytes of a program's output that the policy sees; a longer one is cut in the middle.
    """
    reviewer: str = "none"
    """Who comments between two programs: `none`; `self`, the policy in the same conversation; or a
    folder or an endpoint of a model that is not trained.
    """
    trains: Literal["generator", "reviewer"] = "generator"
    """Whose messages are trained. `reviewer`: another model is the Generator, and the reward is the
    change of the verdict after the comment.
    """
    generator: str = ""
    """With `trains: reviewer`: the model that writes the programs, a folder or an endpoint."""
    other_tokens: PositiveInt = 104
    """Maximum tokens of one message of a model that is not trained."""
    shaping: float = Field(0.0, ge=0, le=1)
    """Maximum bonus of a conversation for visible tests that no earlier program passed, the first
    program's tests included; 0: only the last program counts.
    """

    @model_validator(mode="after")
    def check_combination(self) -> Agents:
        if (self.trains == "reviewer") != bool(self.generator):
            raise ValueError(
                "agents.generator is required with trains: reviewer, and only then: set it to a "
                "folder or an endpoint, or remove it"
            )
        if self.trains == "reviewer" and self.tool_calls:
            raise ValueError(
                "agents.tool_calls is for the generator: remove it, or trains: reviewer"
            )
        if self.trains == "reviewer" and self.reviewer != "none":
            raise ValueError(
                "with trains: reviewer the policy is the reviewer: remove agents.reviewer"
            )
        if (
            self.turns == 1
            and (self.reviewer != "none" or self.shaping)
            and self.trains == "generator"
        ):
            raise ValueError(
                "agents.reviewer and agents.shaping need agents.turns of 2 or more, got 1"
            )
        return self

    @property
    def on(self) -> bool:
        return self.several or self.trains == "reviewer"

    @property
    def several(self) -> bool:
        """Whether a conversation may have several messages of the policy."""
        return self.turns > 1 or self.tool_calls > 0
