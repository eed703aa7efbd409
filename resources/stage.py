"""A stage of the pipeline: its title, its kind of artifact, and the code that decides its content.

Plain data, so that the command line and the live view read it without Dagster.
"""

from __future__ import annotations

from dataclasses import dataclass

from artifacts.code_hash import hash_modules

# What decides the content of an artifact besides the stage's own file. The packages above them only
# call these, store the result and show it.
CONTENT = ("sandbox", "problems", "rewards", "decoding", "evaluation", "verl_jobs")


@dataclass(frozen=True)
class PipelineStage:
    """One row of the table of stages.

    title: what the live view says of it. kind: of its artifact, "" if it stores none. after: the
    stages that it needs. removes: it removes problems, and its manifest counts them.
    """

    name: str
    title: str
    kind: str
    group: str
    after: tuple[str, ...] = ()
    removes: bool = False

    @property
    def code(self) -> str:
        """Return the hash of the stage's file and of all that it imports of CONTENT."""
        return hash_modules((f"assets.{self.name}",), CONTENT)
