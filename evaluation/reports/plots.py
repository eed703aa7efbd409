"""Charts of reports and of Dagster's pages: rewards, scores, contributions.

In: plain numbers. Out: SVG.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artifacts.charts import (
    BLUE,
    GREY,
    ORANGE,
    Axes,
    legend,
    padded,
    row_axes,
    row_labels,
    smoothed,
    svg,
    text,
)
from evaluation.statistics.hypothesis_tests import t_interval

FILL = 0.5  # opacity of a bar, so that its interval is visible in the full colour
ROW = 28  # pixels of a row of bars
AXIS = 46  # pixels below an axis, for its numbers and label


class Point(NamedTuple):
    """A share at a training step, with its interval."""

    step: int
    share: float
    low: float
    high: float


class Bar(NamedTuple):
    """A share with its interval; `strong` bars are highlighted."""

    label: str
    share: float
    low: float
    high: float
    strong: bool = True


class BeforeAfter(NamedTuple):
    """Before and after of one group of tasks, each as (share, low, high)."""

    label: str
    before: tuple[float, float, float]
    after: tuple[float, float, float]


class Band(NamedTuple):
    """One figure over the steps of several runs, each a curve of (step, value)."""

    label: str
    runs: Sequence[Sequence[tuple[int, float]]]


def reward_curve(
    rewards: Sequence[tuple[int, float]], scores: Mapping[str, Sequence[Point]]
) -> str:
    """Plot the mean reward of each training step in the lower panel; above it, on the same steps,
    pass@1 of benchmarks with intervals.
    """
    points = [point for each in scores.values() for point in each]
    steps = padded([step for step, _ in rewards] + [point.step for point in points], 0.02)
    reached = [100 * share for point in points for share in (point.low, point.high)]
    shares = padded(reached) if points else (0, 100)
    top = Axes(steps, shares, 26, 190)
    below = Axes(steps, padded(reward for _, reward in rewards), 236, 130)
    last = max([step for step, _ in rewards] + [point.step for point in points], default=None)
    grid = top.vertical_grid(numbers=False, whole=True, last=last)
    parts = [grid, top.horizontal_grid("pass@1, %")]
    colours = dict(zip(scores, (ORANGE, BLUE, GREY), strict=False))
    for name, colour in colours.items():
        parts.append(_with_interval(top, scores[name], colour))
    parts.append(legend(list(colours.items()), top.left, 14))
    smooth = smoothed([reward for _, reward in rewards], 5)
    parts += [
        below.vertical_grid("training step", whole=True, last=last),
        below.horizontal_grid("mean reward"),
        below.curve(rewards, GREY, 1, 0.7),
        below.curve(zip([step for step, _ in rewards], smooth, strict=True), BLUE),
    ]
    return svg(parts, below.top + below.height + AXIS)


def _with_interval(axes: Axes, points: Sequence[Point], colour: str) -> str:
    lows, highs = [(p.step, 100 * p.low) for p in points], [(p.step, 100 * p.high) for p in points]
    curve = [(p.step, 100 * p.share) for p in points]
    dots = "".join(axes.dot(x, y, colour) for x, y in curve)
    return axes.band(lows, highs, colour) + axes.curve(curve, colour) + dots


def bands(figures: Sequence[Band]) -> str:
    """Plot a panel for each figure: each run as a thin line, their mean, and its 95 % interval
    (Student's t) if two runs or more have the step.
    """
    steps = padded((step for each in figures for run in each.runs for step, _ in run), 0.02)
    height, parts = 170, []
    for number, figure in enumerate(figures):
        last = number == len(figures) - 1
        parts.append(_panel(figure, steps, 10 + number * (height + 20), height, last))
    return svg(parts, len(figures) * (height + 20) + AXIS)


def _panel(figure: Band, steps: tuple[float, float], top: int, height: int, last: bool) -> str:
    at: dict[int, list[float]] = {}
    for run in figure.runs:
        for step, value in run:
            at.setdefault(step, []).append(value)
    several = {step: t_interval(values) for step, values in at.items() if len(values) > 1}
    lows = [(step, several[step].low) for step in sorted(several)]
    highs = [(step, several[step].high) for step in sorted(several)]
    shown = [value for values in at.values() for value in values]
    axes = Axes(steps, padded(shown + [y for _, y in (*lows, *highs)]), top, height)
    return "".join(
        [
            axes.vertical_grid("training step" if last else "", whole=True, numbers=last),
            axes.horizontal_grid(figure.label),
            axes.band(lows, highs, BLUE),
            *(axes.curve(run, GREY, 0.8, 0.5) for run in figure.runs),
            axes.curve([(step, sum(at[step]) / len(at[step])) for step in sorted(at)], BLUE),
        ]
    )


def score_bars(bars: Sequence[Bar]) -> str:
    """Plot a horizontal bar for each score, in their order, with its interval and value."""
    widest = min(106.0, max(100 * bar.high for bar in bars) * 1.15 + 2)
    labels = [bar.label for bar in bars]
    axes = row_axes(labels, (0, widest), 6, ROW)
    parts = [axes.vertical_grid("pass@1, %"), row_labels(axes, labels)]
    for y, bar in enumerate(bars):
        colour = ORANGE if bar.strong else GREY
        x, middle = axes.at(100 * bar.high, y)
        parts += [
            axes.bar((0, y - 0.31), (100 * bar.share, y + 0.31), colour, FILL),
            axes.curve([(100 * bar.low, y), (100 * bar.high, y)], colour),
            text(x + 7, middle + 4, f"{100 * bar.share:.1f}"),
        ]
    return svg(parts, axes.top + axes.height + AXIS)


def before_after(
    pairs: Sequence[BeforeAfter], labels: tuple[str, str] = ("before", "after")
) -> str:
    """Plot two bars for each group, with intervals."""
    highest = 106 * max(high for pair in pairs for _, _, high in (pair.before, pair.after))
    axes = Axes((-0.5, len(pairs) - 0.5), (0, highest or 1), 26, 210)
    parts = [
        axes.horizontal_grid("pass@1, %"),
        legend([(labels[0], GREY), (labels[1], ORANGE)], axes.left, 14),
    ]
    for number, pair in enumerate(pairs):
        for shift, colour, (share, low, high) in (
            (-0.19, GREY, pair.before),
            (0.19, ORANGE, pair.after),
        ):
            x = number + shift
            parts.append(axes.bar((x - 0.18, 0), (x + 0.18, 100 * share), colour, FILL))
            parts.append(axes.curve([(x, 100 * low), (x, 100 * high)], colour))
        x, floor = axes.at(number, 0)
        parts.append(text(x, floor + 18, pair.label, "middle"))
    return svg(parts, axes.top + axes.height + 28)


def contributions(rows: Sequence[tuple[str, float, tuple[float, float] | None]]) -> str:
    """Plot a line for each change: (label, difference, interval), all shares; improvements are on
    the right. Without an interval a hollow point.
    """
    labels = [label for label, _, _ in rows]
    values = [100 * value for _, difference, ends in rows for value in (difference, *(ends or ()))]
    axes = row_axes(labels, padded([0, *values], 0.08), 6, ROW)
    parts = [
        axes.vertical_grid("contribution: points of pass@1 that are lost by the change"),
        row_labels(axes, labels),
        axes.curve([(0, -0.5), (0, len(rows) - 0.5)], GREY, 1.2),
    ]
    for y, (_, difference, interval) in enumerate(rows):
        if interval:
            parts.append(axes.curve([(100 * end, y) for end in interval], ORANGE))
        parts.append(axes.dot(100 * difference, y, ORANGE, hollow=not interval))
    return svg(parts, axes.top + axes.height + AXIS)
