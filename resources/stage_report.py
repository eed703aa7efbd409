"""What a stage reports about its work."""

from __future__ import annotations

from resources.progress import Progress


class StageReport:
    """Passed to the stage's code.

    `created` and `reused` count artifacts. A stage that only reused some did no work.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.created = self.reused = 0
        self.text = ""

    @property
    def only_reused(self) -> bool:
        return self.reused > 0 and self.created == 0

    def say(self, text: str) -> None:
        """Set one short line about the outcome, shown next to the stage."""
        self.text = text
