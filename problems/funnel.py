"""What became of every problem: at every stage, in = out + the count of each reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


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
            example = (
                f" {_cell(f'{first[reason].problem_id} {first[reason].detail}')} |"
                if examples
                else ""
            )
            lines.append(f"| | | | {count} | {_cell(reason)} |{example}")
    return "\n".join(lines)


def _cell(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= 120 else flat[:119] + "…"
