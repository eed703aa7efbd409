"""What became of every problem: at every stage, in = out + the count of each reason.

A dataset lists the removed problems in a file of its folder, and its manifest has the counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

REMOVED = "removed.json"


@dataclass(frozen=True)
class Removed:
    """A removed problem, or a row that never became one.

    `reason` is one of a few fixed texts, so that it can be counted; `detail` is specific.
    """

    problem_id: str
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Stage:
    """One stage. Raises ValueError unless in = out + removed.

    beside: the stage creates new problems, which join the next stage. more: for each reason, the
    number of removed problems that are not listed.
    """

    name: str
    came_in: int
    went_out: int
    removed: tuple[Removed, ...] = ()
    beside: bool = False
    more: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.came_in != self.went_out + self.removed_count:
            raise ValueError(
                f"stage {self.name}: {self.came_in} in, but {self.went_out} out and "
                f"{self.removed_count} removed: a problem was lost or counted twice"
            )

    @property
    def reasons(self) -> Counter[str]:
        return Counter(row.reason for row in self.removed) + Counter(self.more)

    @property
    def removed_count(self) -> int:
        return len(self.removed) + sum(self.more.values())

    @property
    def facts(self) -> dict[str, Any]:
        """Return the stage's counts as a fact of its dataset's manifest."""
        reasons = dict(self.reasons.most_common())
        return {"funnel": {"in": self.came_in, "out": self.went_out, "removed": reasons}}

    @classmethod
    def counted(cls, name: str, went_out: int, removed: Sequence[Removed]) -> Stage:
        """Return the stage that kept so many problems and removed these."""
        return cls(name, went_out + len(removed), went_out, tuple(removed))

    @classmethod
    def of(
        cls, name: str, facts: Mapping[str, Any], removed: Sequence[Removed] | None = None
    ) -> Stage:
        """Return the stage of a manifest's facts. removed: all that it removed; None: counts."""
        counts = facts["funnel"]
        more = counts["removed"] if removed is None else {}
        return cls(name, counts["in"], counts["out"], tuple(removed or ()), more=more)


def write_removed(removed: Iterable[Removed], folder: Path) -> None:
    text = json.dumps([asdict(row) for row in removed], indent=1)
    (folder / REMOVED).write_text(text, encoding="utf-8")


def read_removed(folder: Path) -> list[Removed]:
    """Return the problems that a dataset lists as removed, with the reasons."""
    rows = json.loads((folder / REMOVED).read_text(encoding="utf-8"))
    return [Removed(**row) for row in rows]


def funnel(stages: Sequence[Stage], *, examples: bool = True) -> str:
    """Return a Markdown table of the stages: counts in and out, and each reason with an example.

    examples: a program's output may contain an address or a time, so leave examples out of a text
    that is hashed.
    """
    lines = [
        f"| stage | in | out | removed | why |{' for example |' if examples else ''}",
        f"|---|---:|---:|---:|---|{'---|' if examples else ''}",
    ]
    for stage in stages:
        lines.append(
            f"| {stage.name} | {stage.came_in} | {stage.went_out} | {stage.removed_count} | "
            f"|{' |' if examples else ''}"
        )
        first = {row.reason: row for row in reversed(stage.removed)}
        for reason, count in stage.reasons.most_common():
            one = first.get(reason)  # a manifest has only counts
            example = f" {_cell(f'{one.problem_id} {one.detail}') if one else ''} |"
            example = example if examples else ""
            lines.append(f"| | | | {count} | {_cell(reason)} |{example}")
    return "\n".join(lines)


def _cell(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= 120 else flat[:119] + "…"
