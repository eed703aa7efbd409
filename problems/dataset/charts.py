"""Draw the charts of a dataset as SVG: the funnel, and how its problems are distributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artifacts.charts import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    WIDTH,
    legend,
    line,
    rect,
    shortened,
    svg,
    text,
)
from problems.funnel import Stage

LABELS, FIGURES, ROW = 250, 70, 24
BUCKETS = 20  # of a histogram
MAX_REASONS = 6  # at most this many reasons of a stage have their own bar

Bar = tuple[str, int, int, str]  # label, start, length, colour


def funnel_chart(stages: Sequence[Stage]) -> str:
    """Draw, from top to bottom, what came in, what each reason removed, and what was left."""
    bars: list[Bar] = []
    left = 0
    for number, stage in enumerate(stages):
        if stage.beside:
            bars += [(f"+ {stage.name}", left, stage.went_out, GREEN)] if stage.went_out else []
            left += stage.went_out
            continue
        if number == 0 and stage.removed_count:
            bars.append(("came in", 0, stage.came_in, GREY))
        at = stage.came_in
        for reason, count in _few(stage):
            at -= count
            bars.append((f"− {reason}", at, count, ORANGE))
        bars.append((stage.name, 0, stage.went_out, BLUE))
        left = stage.went_out
    return _horizontal(bars)


def _few(stage: Stage) -> list[tuple[str, int]]:
    reasons = stage.reasons.most_common()
    rest = sum(count for _, count in reasons[MAX_REASONS:])
    return [
        *reasons[:MAX_REASONS],
        *([(f"{len(reasons) - MAX_REASONS} other reasons", rest)] if rest else []),
    ]


def _horizontal(bars: Sequence[Bar]) -> str:
    most = max((begin + length for _, begin, length, _ in bars), default=0) or 1
    room = WIDTH - LABELS - FIGURES
    parts = []
    for number, (label, begin, length, colour) in enumerate(bars):
        y, x, wide = number * ROW, LABELS + room * begin / most, max(1.5, room * length / most)
        strong = begin == 0 and label[0] not in "−+"
        parts.append(text(LABELS - 10, y + 16, shortened(label), "end", strong))
        parts.append(rect(x, y + 4, wide, ROW - 8, colour=colour))
        parts.append(text(x + wide + 6, y + 16, f"{length:,}"))
    return svg(parts, len(bars) * ROW + 4)


def histogram(
    values: Mapping[str, Sequence[float]], label: str, buckets: int = BUCKETS, height: int = 190
) -> str:
    """Draw how many values in [0, 1] are in each bucket; see `stacked`."""
    by_name = {name: [0] * buckets for name in values}
    for name, own in values.items():
        for value in own:
            by_name[name][bucket_of(value, buckets)] += 1
    return stacked(by_name, label, buckets, height)


def bucket_of(value: float, buckets: int = BUCKETS) -> int:
    return min(int(value * buckets), buckets - 1)


def stacked(
    by_name: Mapping[str, Sequence[int]], label: str, buckets: int = BUCKETS, height: int = 190
) -> str:
    """Draw the counts of each bucket of [0, 1], stacked, with one colour per name.

    label: what the values are, shown below the axis.
    """
    names = sorted(by_name, key=lambda name: (-sum(by_name[name]), name))
    shown = names if len(names) <= len(COLOURS) else [*names[: len(COLOURS) - 1], "others"]
    counts = {name: [0] * buckets for name in shown}
    for name in names:
        own = counts[name if name in counts else "others"]
        own[:] = map(sum, zip(own, by_name[name], strict=True))
    most = max((sum(column) for column in zip(*counts.values(), strict=True)), default=0) or 1
    wide, floor, top = (WIDTH - 60) / buckets, height - 40, 26
    parts = [
        text(45, top + 8, f"{most:,}", "end"),
        text(45, floor, "0", "end"),
        line([(50, floor), (WIDTH - 10, floor)], GREY, opacity=0.5),
    ]
    for bucket in range(buckets):
        y = float(floor)
        for name, colour in zip(shown, COLOURS, strict=False):
            tall = (floor - top) * counts[name][bucket] / most
            y -= tall
            if tall:
                parts.append(
                    rect(50 + bucket * wide + 1, y, wide - 2, tall, colour=colour, round=0)
                )
    parts += [
        text(50 + (WIDTH - 60) * tick / 4, floor + 16, f"{tick / 4:g}", "middle")
        for tick in range(5)
    ]
    parts.append(text(50 + (WIDTH - 60) / 2, floor + 34, label, "middle"))
    words = [f"{shortened(name)} {sum(counts[name]):,}" for name in shown]
    parts.append(legend(list(zip(words, COLOURS, strict=False)), 50, 14))
    return svg(parts, height)
