"""The parts that every chart is drawn from, as SVG: text, bars, curves, axes.

In: plain numbers. Out: SVG text. They are written here, not by a plotting library, so that the same
numbers give the same bytes on every machine, in a thousandth of the time. The colours are readable
on light and dark pages.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Each has a contrast of at least 3.4:1 on white and on near-black.
GREY, BLUE, ORANGE, GREEN = "#737c8c", "#3a7bd5", "#d9620f", "#2e9d6a"
COLOURS = (BLUE, ORANGE, GREEN, "#9a6fd0", "#c2557f", "#8a8f2c", GREY)
WIDTH = 760
MAX_LABEL = 36  # characters
FONT = f'font-family="system-ui,sans-serif" font-size="13" fill="{GREY}"'

Place = tuple[float, float]  # x and y, in values or in pixels


@dataclass(frozen=True)
class Axes:
    """A panel of a chart. xs, ys: the values at its left and right, and at its bottom and top edge.

    The other fields are pixels of the chart.
    """

    xs: tuple[float, float]
    ys: tuple[float, float]
    top: float
    height: float
    left: float = 64
    right: float = WIDTH - 14

    def at(self, x: float, y: float) -> Place:
        """Return the pixel of a value."""
        (first, last), (low, high) = self.xs, self.ys
        return (
            self.left + (self.right - self.left) * (x - first) / ((last - first) or 1),
            self.top + self.height * (high - y) / ((high - low) or 1),
        )

    def vertical_grid(
        self,
        label: str = "",
        whole: bool = False,
        numbers: bool = True,
        last: float | None = None,
    ) -> str:
        """Draw a line at each round value of x, with its number and the label below.

        last: a value that has a line too, instead of round ones too near to it.
        """
        bottom, parts = self.top + self.height, []
        values = ticks(*self.xs, whole=whole)
        if last is not None:
            near = 0.06 * (self.xs[1] - self.xs[0])
            values = [*(value for value in values if abs(value - last) > near), last]
        for value in values:
            x, _ = self.at(value, self.ys[0])
            parts.append(line([(x, self.top), (x, bottom)], GREY, opacity=0.2))
            if numbers:
                parts.append(text(x, bottom + 17, f"{value:g}", "middle"))
        if label:
            parts.append(text((self.left + self.right) / 2, bottom + 36, label, "middle"))
        return "".join(parts)

    def horizontal_grid(self, label: str) -> str:
        """Draw a line at each round value of y, with its number and the label on the left."""
        parts = []
        for value in ticks(*self.ys, most=max(2, int(self.height / 24))):
            _, y = self.at(self.xs[0], value)
            parts.append(line([(self.left, y), (self.right, y)], GREY, opacity=0.2))
            parts.append(text(self.left - 8, y + 4, f"{value:g}", "end"))
        middle = self.top + self.height / 2
        turned = f'transform="rotate(-90 14 {middle:.1f})"'
        return "".join(parts) + text(14, middle, label, "middle", more=turned)

    def curve(
        self, points: Iterable[Place], colour: str, width: float = 2, opacity: float = 1
    ) -> str:
        return line([self.at(*point) for point in points], colour, width, opacity)

    def band(self, lows: Sequence[Place], highs: Sequence[Place], colour: str) -> str:
        """Fill the area between two curves."""
        outline = [self.at(*point) for point in (*lows, *reversed(highs))]
        return f'<polygon points="{_joined(outline)}" fill="{colour}" fill-opacity="0.18"/>'

    def bar(self, one: Place, other: Place, colour: str, opacity: float = 1) -> str:
        """Fill the rectangle with these two opposite corners."""
        (x1, y1), (x2, y2) = self.at(*one), self.at(*other)
        return rect(
            min(x1, x2),
            min(y1, y2),
            abs(x2 - x1),
            abs(y2 - y1),
            colour=colour,
            opacity=opacity,
            round=0,
        )

    def dot(self, x: float, y: float, colour: str, hollow: bool = False) -> str:
        across, down = self.at(x, y)
        fill = "none" if hollow else colour
        return (
            f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3.5" fill="{fill}" stroke="{colour}"/>'
        )


def row_axes(labels: Sequence[str], xs: tuple[float, float], top: float, row: float) -> Axes:
    """Return the axes of a chart with a row for each label: row i is at y = i."""
    wide = 24 + 7.4 * max((len(shortened(label)) for label in labels), default=0)
    height = row * len(labels)
    return Axes(xs, (len(labels) - 0.5, -0.5), top, height, left=wide)


def row_labels(axes: Axes, labels: Sequence[str]) -> str:
    places = (axes.at(axes.xs[0], number) for number in range(len(labels)))
    return "".join(
        text(x - 10, y + 4, shortened(label), "end")
        for (x, y), label in zip(places, labels, strict=True)
    )


def ticks(first: float, last: float, most: int = 8, whole: bool = False) -> list[float]:
    """Return at most about `most` round values in a range: multiples of 1, 2 or 5 × 10^n."""
    reach = abs(last - first) or 1.0
    size = 10 ** math.floor(math.log10(reach / most))
    step = next(size * factor for factor in (1, 2, 5, 10) if reach / (size * factor) <= most)
    step = max(1.0, step) if whole else step
    low, high = sorted((first, last))
    return [
        round(number * step, 10)
        for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]


def padded(values: Iterable[float], share: float = 0.06) -> tuple[float, float]:
    """Return the range of the values, a little wider on both sides."""
    known = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    more = share * (high - low) or 0.5
    return low - more, high + more


def smoothed(values: Sequence[float], over: int) -> list[float]:
    """Return the means of each value with the `over - 1` values before it."""
    parts = (values[max(0, at - over + 1) : at + 1] for at in range(len(values)))
    return [sum(part) / len(part) for part in parts]


def text(
    x: float, y: float, words: str, anchor: str = "start", strong: bool = False, more: str = ""
) -> str:
    """more: further attributes, as XML."""
    weight = ' font-weight="600"' if strong else ""
    turned = f" {more}" if more else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}{turned}>{escape(words)}'
        "</text>"
    )


def rect(
    x: float,
    y: float,
    wide: float,
    high: float,
    *,
    colour: str,
    opacity: float = 1,
    round: float = 2,
) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="{round}" '
        f'fill="{colour}" fill-opacity="{opacity}"/>'
    )


def line(points: Sequence[Place], colour: str, width: float = 1, opacity: float = 1) -> str:
    """Draw a line through these pixels."""
    return (
        f'<polyline points="{_joined(points)}" fill="none" stroke="{colour}" '
        f'stroke-width="{width}" stroke-opacity="{opacity}" stroke-linejoin="round"/>'
    )


def legend(names: Sequence[tuple[str, str]], x: float, y: float) -> str:
    """Draw (name, colour) beside one another."""
    parts = []
    for name, colour in names:
        parts.append(rect(x, y - 10, 10, 10, colour=colour) + text(x + 15, y, name))
        x += 32 + 7.2 * len(name)
    return "".join(parts)


def svg(parts: Iterable[str], height: float, width: float = WIDTH, attributes: str = FONT) -> str:
    """Return the picture of these parts. attributes: of the whole picture, as XML."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" {attributes}>'
    )
    return "\n".join([head, *parts, "</svg>\n"])


def shortened(label: str) -> str:
    return label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"


def data_uri(picture: str) -> str:
    return f"data:image/svg+xml;base64,{b64encode(picture.encode()).decode()}"


def image(title: str, picture: str) -> str:
    """Return the picture inside Markdown text."""
    return f"![{title}]({data_uri(picture)})"


def _joined(points: Iterable[Place]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
