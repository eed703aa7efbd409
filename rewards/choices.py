"""People's choices between two completions for one task: a row each, as JSON lines or parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from problems.typed_rows import typed_rows


class ShownChoice(BaseModel):
    """One choice. `left` and `right` are the complete texts as they were shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem_id: str
    left: str
    right: str
    chosen: Literal["left", "right", "tie"]
    judge: str = ""  # pseudonym of the person who chose
    at: str = ""  # time of the choice, ISO 8601

    @model_validator(mode="after")
    def two_answers(self) -> ShownChoice:
        if self.left == self.right:
            raise ValueError(
                "`left` and `right` are the same text: a choice needs two different completions"
            )
        return self


def read_choices(path: Path) -> list[ShownChoice]:
    """Read all choices of a `.jsonl` or `.parquet` file. Raises as `typed_rows`."""
    return [choice for _, choice in typed_rows(path, ShownChoice)]
