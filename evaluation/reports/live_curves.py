"""Small curves side by side, as SVG, for a picture that is redrawn every few seconds.

Nine panels take 1 ms and 12 KB: Dagster's event log stores each picture. In: named series of (step,
value). Out: SVG.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artifacts.charts import BLUE, Axes, svg, text

WIDTH, HEIGHT, ACROSS = 240, 96, 3
TOP, SIDE = 30, 10  # space for a panel's title, and on both sides of its curve
MAX_POINTS = 120  # points of a curve; more are averaged


def panels(series: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """Draw a panel for each series with a point: its name, its last value, its curve from lowest to
    highest.
    """
    curves = {name: points for name, points in series.items() if points}
    parts = [
        (
            "<g "
            f'transform="translate({number % ACROSS * WIDTH},{number // ACROSS * HEIGHT})">'
            f"{_panel(name, points)}</g>"
        )
        for number, (name, points) in enumerate(curves.items())
    ]
    wide, tall = WIDTH * min(ACROSS, max(1, len(curves))), HEIGHT * -(-len(curves) // ACROSS)
    return svg(parts, tall, wide)


def _panel(name: str, points: Sequence[tuple[int, float]]) -> str:
    thin = _thinned(points)
    values = [value for _, value in thin]
    axes = Axes(
        (thin[0][0], thin[-1][0]),
        (min(values), max(values)),
        TOP,
        HEIGHT - TOP - 12,
        left=SIDE,
        right=WIDTH - SIDE,
    )
    return (
        text(SIDE, 14, name)
        + text(WIDTH - SIDE, 14, f"{points[-1][1]:.4g}", "end", strong=True)
        + axes.curve(thin, BLUE, 1.6)
        + axes.dot(*thin[-1], BLUE)
    )


def _thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return at most MAX_POINTS points, each the mean of its neighbours; keep the last."""
    size = -(-len(points) // MAX_POINTS)
    if size == 1:
        return list(points)
    means = [
        (part[-1][0], sum(value for _, value in part) / len(part))
        for i in range(0, len(points) - 1, size)
        if (part := points[i : i + size])
    ]
    return [*means, points[-1]]
