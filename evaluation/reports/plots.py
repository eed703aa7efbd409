"""Plots for reports and for Dagster's pages: small PNGs without a background, readable on light and
dark pages.

In: plain numbers. Out: PNG bytes; `data_uri` embeds them in HTML and Markdown.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Contrast at least 3.5:1 on white and on near-black.
BEFORE, AFTER, NEUTRAL, GRID = "#737c8c", "#d9620f", "#3a7bd5", "#737c8c"
FILL = 0.5  # opacity of a bar, so that its interval is visible in the full colour


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


class Pair(NamedTuple):
    """Before and after of one group of tasks, each as (share, low, high)."""

    label: str
    before: tuple[float, float, float]
    after: tuple[float, float, float]


class Band(NamedTuple):
    """One figure over the steps of several runs, each a curve of (step, value)."""

    label: str
    runs: Sequence[Sequence[tuple[int, float]]]


def data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def reward_curve(
    rewards: Sequence[tuple[int, float]], scores: Mapping[str, Sequence[Point]]
) -> bytes:
    """Plot the mean reward of each training step in the lower panel; above it, on the same steps,
    pass@1 of benchmarks with intervals.
    """
    from matplotlib.ticker import MaxNLocator

    figure, (top, below) = _figure(7.2, 3.8, rows=2, heights=(3, 2))
    for (name, points), colour in zip(scores.items(), (AFTER, NEUTRAL, BEFORE), strict=False):
        steps, shares = [p.step for p in points], [100 * p.share for p in points]
        top.fill_between(
            steps,
            [100 * p.low for p in points],
            [100 * p.high for p in points],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        top.plot(steps, shares, color=colour, marker="o", markersize=4.5, label=name)
    top.set_ylabel("pass@1, %")
    if scores:
        top.legend(loc="lower right", frameon=False, labelcolor=GRID)
    steps = [step for step, _ in rewards]
    below.plot(steps, [reward for _, reward in rewards], color=GRID, linewidth=1, alpha=0.7)
    below.plot(steps, _smooth([reward for _, reward in rewards]), color=NEUTRAL, linewidth=2)
    below.set_ylabel("mean reward")
    below.set_xlabel("training step")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    return _png(figure)


def bands(figures: Sequence[Band]) -> bytes:
    """Plot a panel for each figure: each run as a thin line, their mean, and its 95 % interval
    (Student's t) if two runs or more have the step.
    """
    from matplotlib.ticker import MaxNLocator

    from evaluation.statistics.hypothesis_tests import t_interval

    plot, panels = _figure(7.2, 2.3 * len(figures), rows=len(figures), heights=[1] * len(figures))
    for axes, figure in zip(panels, figures, strict=True):
        at: dict[int, list[float]] = {}
        for run in figure.runs:
            axes.plot(
                [step for step, _ in run],
                [value for _, value in run],
                color=GRID,
                linewidth=0.8,
                alpha=0.5,
            )
            for step, value in run:
                at.setdefault(step, []).append(value)
        steps = sorted(at)
        axes.plot(
            steps, [sum(at[step]) / len(at[step]) for step in steps], color=NEUTRAL, linewidth=2
        )
        several = [step for step in steps if len(at[step]) > 1]
        reach = [t_interval(at[step]) for step in several]
        axes.fill_between(
            several,
            [each.low for each in reach],
            [each.high for each in reach],
            color=NEUTRAL,
            alpha=0.2,
            linewidth=0,
        )
        axes.set_ylabel(figure.label)
    panels[-1].set_xlabel("training step")
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return _png(plot)


def score_bars(bars: Sequence[Bar]) -> bytes:
    """Plot a horizontal bar for each score, in their order, with its interval and value."""
    figure, (axes,) = _figure(7.2, 0.7 + 0.42 * len(bars))
    at = range(len(bars))
    colours = [AFTER if b.strong else BEFORE for b in bars]
    shares = [100 * b.share for b in bars]
    axes.barh(at, shares, color=colours, height=0.62, alpha=FILL)
    axes.hlines(
        list(at),
        [100 * b.low for b in bars],
        [100 * b.high for b in bars],
        colors=colours,
        linewidth=2,
    )
    for y, bar in enumerate(bars):
        axes.text(100 * bar.high + 1, y, f"{100 * bar.share:.1f}", va="center", color=GRID)
    axes.set_yticks(list(at), [b.label for b in bars])
    axes.invert_yaxis()
    axes.set_xlim(0, min(106.0, max(100 * b.high for b in bars) * 1.15 + 2))
    axes.set_xlabel("pass@1, %")
    return _png(figure)


def before_after(pairs: Sequence[Pair], labels: tuple[str, str] = ("before", "after")) -> bytes:
    """Plot two bars for each group, with intervals."""
    figure, (axes,) = _figure(7.2, 2.8)
    for shift, colour, label, values in (
        (-0.19, BEFORE, labels[0], [p.before for p in pairs]),
        (0.19, AFTER, labels[1], [p.after for p in pairs]),
    ):
        at = [i + shift for i in range(len(pairs))]
        shares = [100 * value[0] for value in values]
        axes.bar(at, shares, width=0.36, color=colour, alpha=FILL, label=label)
        axes.vlines(
            at,
            [100 * v[1] for v in values],
            [100 * v[2] for v in values],
            colors=colour,
            linewidth=2,
        )
    axes.set_xticks(range(len(pairs)), [p.label for p in pairs])
    axes.set_ylabel("pass@1, %")
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, labelcolor=GRID)
    return _png(figure)


def contributions(rows: Sequence[tuple[str, float, tuple[float, float] | None]]) -> bytes:
    """Plot a line for each change: (label, difference, interval), all shares; improvements are on
    the right. Without an interval a hollow point.
    """
    figure, (axes,) = _figure(7.2, 0.9 + 0.42 * len(rows))
    axes.axvline(0, color=GRID, linewidth=1.2)
    for y, (_, difference, interval) in enumerate(rows):
        if interval:
            axes.hlines(y, 100 * interval[0], 100 * interval[1], colors=AFTER, linewidth=2)
        axes.plot(
            100 * difference,
            y,
            "o",
            markersize=6.5,
            color=AFTER,
            markerfacecolor=AFTER if interval else "none",
        )
    axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.margins(x=0.08)
    axes.set_xlabel("contribution: points of pass@1 that are lost by the change")
    return _png(figure)


def common_scale(
    difficulties: Sequence[float], abilities: Sequence[tuple[str, float, float]]
) -> bytes:
    """Plot problems and models on one scale: above, the distribution of problems; below, each
    model's ability with its 95 % interval.

    abilities: (name, ability, standard error), in logits. A model solves a problem straight above
    it half of the time.
    """
    figure, (top, below) = _figure(
        7.2, 2.2 + 0.34 * len(abilities), rows=2, heights=(4, 1 + len(abilities))
    )
    top.hist(difficulties, bins=min(30, max(5, len(difficulties) // 4)), color=NEUTRAL, rwidth=0.9)
    top.set_ylabel("problems")
    at = list(range(len(abilities)))
    below.errorbar(
        [value for _, value, _ in abilities],
        at,
        xerr=[1.96 * error for _, _, error in abilities],
        fmt="o",
        markersize=5.5,
        color=AFTER,
        elinewidth=2,
    )
    below.set_yticks(at, [name for name, _, _ in abilities])
    below.set_ylim(-0.7, len(abilities) - 0.3)
    below.set_xlabel("difficulty and ability, logits (mean difficulty 0)")
    return _png(figure)


def _smooth(values: Sequence[float], window: int = 5) -> list[float]:
    """Return the moving average of the last values, which shows a trend despite noisy steps."""
    return [
        sum(values[max(0, i - window + 1) : i + 1]) / len(values[max(0, i - window + 1) : i + 1])
        for i in range(len(values))
    ]


def _figure(
    width: float, height: float, rows: int = 1, heights: Sequence[float] = (1,)
) -> tuple[Figure, list[Axes]]:
    """Make a figure without pyplot: no global state, no display, safe in threads."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = list(
        figure.subplots(
            rows, 1, sharex=rows > 1, squeeze=False, gridspec_kw={"height_ratios": heights}
        )[:, 0]
    )
    for one in axes:
        one.set_facecolor("none")
        one.grid(axis="both", color=GRID, alpha=0.18, linewidth=0.8)
        one.set_axisbelow(True)
        one.tick_params(colors=GRID, labelsize=9, length=0)
        one.xaxis.label.set_color(GRID)
        one.yaxis.label.set_color(GRID)
        one.spines[:].set_visible(False)
    return figure, axes


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, transparent=True, metadata={"Software": None})
    return buffer.getvalue()
