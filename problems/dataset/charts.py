"""Draw the charts of a dataset as SVG.

They are written here, not by a plotting library, so that the same numbers give the same bytes on
every machine. They are readable on a light and on a dark page. In: plain numbers. Out: SVG text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from problems.funnel import Stage

# Each has a contrast of at least 3.4:1 on white and on near-black.
TEXT, PROBLEM_COLOUR, REMOVED_COLOUR, INPUT_COLOUR = (
    "#737c8c",
    "#3a7bd5",
    "#d9620f",
    "#2e9d6a",
)
COLOURS = (PROBLEM_COLOUR, REMOVED_COLOUR, INPUT_COLOUR, "#9a6fd0", "#c2557f", "#8a8f2c", TEXT)
WIDTH, LABELS, FIGURES, ROW = 760, 250, 70, 24
BUCKETS = 20  # of a histogram
MAX_REASONS = 6  # at most this many reasons of a stage have their own bar

Bar = tuple[str, int, int, str]  # label, start, length, colour


def funnel_chart(stages: Sequence[Stage]) -> str:
    """Draw, from top to bottom, what came in, what each reason removed, and what was left."""
    bars: list[Bar] = []
    left = 0
    for number, stage in enumerate(stages):
        if stage.beside:
            bars += (
                [(f"+ {stage.name}", left, stage.went_out, INPUT_COLOUR)] if stage.went_out else []
            )
            left += stage.went_out
            continue
        if number == 0 and stage.removed_count:
            bars.append(("came in", 0, stage.came_in, TEXT))
        at = stage.came_in
        for reason, count in _few(stage):
            at -= count
            bars.append((f"− {reason}", at, count, REMOVED_COLOUR))
        bars.append((stage.name, 0, stage.went_out, PROBLEM_COLOUR))
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
        weight = ' font-weight="600"' if begin == 0 and label[0] not in "−+" else ""
        parts.append(
            f'<text x="{LABELS - 10}" y="{y + 16}" '
            f'text-anchor="end"{weight}>{escape(_short(label))}</text>'
        )
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 4}" width="{wide:.1f}" height="{ROW - 8}" rx="2" '
            f'fill="{colour}"/>'
        )
        parts.append(f'<text x="{x + wide + 6:.1f}" y="{y + 16}">{length:,}</text>')
    return _svg(parts, len(bars) * ROW + 4)


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
        f'<text x="45" y="{top + 8}" text-anchor="end">{most:,}</text>',
        f'<text x="45" y="{floor}" text-anchor="end">0</text>',
    ]
    parts.append(
        f'<line x1="50" y1="{floor}" x2="{WIDTH - 10}" y2="{floor}" stroke="{TEXT}" '
        'stroke-opacity="0.5"/>'
    )
    for bucket in range(buckets):
        y = float(floor)
        for name, colour in zip(shown, COLOURS, strict=False):
            tall = (floor - top) * counts[name][bucket] / most
            y -= tall
            if tall:
                parts.append(
                    f'<rect x="{50 + bucket * wide + 1:.1f}" y="{y:.1f}" '
                    f'width="{wide - 2:.1f}" height="{tall:.1f}" fill="{colour}"/>'
                )
    parts += [
        (
            f'<text x="{50 + (WIDTH - 60) * tick / 4:.1f}" y="{floor + 16}" '
            f'text-anchor="middle">{tick / 4:g}</text>'
        )
        for tick in range(5)
    ]
    parts.append(
        f'<text x="{50 + (WIDTH - 60) / 2:.1f}" y="{floor + 34}" '
        f'text-anchor="middle">{escape(label)}</text>'
    )
    x = 50.0
    for name, colour in zip(shown, COLOURS, strict=False):
        words = f"{_short(name)} {sum(counts[name]):,}"
        parts.append(
            f'<rect x="{x:.1f}" y="4" width="10" height="10" rx="2" fill="{colour}"/><text '
            f'x="{x + 15:.1f}" y="14">{escape(words)}</text>'
        )
        x += 32 + 7.2 * len(words)
    return _svg(parts, height)


def _short(text: str) -> str:
    return text if len(text) <= 36 else text[:35] + "…"


def _svg(parts: Sequence[str], height: int) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 '
        f'{WIDTH} {height}" '
    )
    return "\n".join(
        [
            f'{head}font-family="system-ui,sans-serif" font-size="13" fill="{TEXT}">',
            *parts,
            "</svg>\n",
        ]
    )
