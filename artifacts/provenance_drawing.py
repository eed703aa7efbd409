"""Draw provenance as SVG: boxes in rows, inputs above the artifacts made from them, curves between.

In: boxes. Out: SVG with classes (`lineage`, `node`, `edge`, `hash`) and no colours: a page can
style it for light and dark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from statistics import fmean
from typing import NamedTuple

from artifacts import charts

WIDE, HIGH, GAP_X, GAP_Y, EDGE = 214, 46, 24, 34, 20
BOW = 22  # sideways distance of a curve for each row that it passes
MAX_LABEL = 25  # characters of a label that fit a box


class Box(NamedTuple):
    """One artifact. `sources`: (role, id) of its inputs, each the id of another box."""

    id: str
    kind: str  # its CSS class
    label: str
    small: str  # second line
    details: str  # tooltip
    sources: tuple[tuple[str, str], ...]


def draw(boxes: Sequence[Box]) -> str:
    """Return the SVG. Tooltips show the details of a box and the role of a curve."""
    places = _places(boxes)
    columns, rows = zip(*places.values(), strict=True)
    width = max(columns) + WIDE + BOW * (max(rows) - EDGE) // (HIGH + GAP_Y) + EDGE
    height = max(rows) + HIGH + EDGE
    curves = [
        _curve(places[source], places[box.id], role)
        for box in boxes
        for role, source in box.sources
    ]
    parts = [*curves, *(_box(box, *places[box.id]) for box in boxes)]
    attributes = 'class="lineage" role="img" aria-label="provenance"'
    return charts.svg(parts, height, width, attributes)


def _places(boxes: Sequence[Box]) -> dict[str, tuple[int, int]]:
    """Return x and y by id. The row is the longest path to a result, and results are in the last
    row. Within a row, boxes are near those made from them.
    """
    sources = {box.id: [id for _, id in box.sources] for box in boxes}
    users: dict[str, list[str]] = defaultdict(list)
    for box in boxes:
        for source in sources[box.id]:
            users[source].append(box.id)
    steps: dict[str, int] = {}

    def raise_to(id: str, step: int) -> None:
        if steps.get(id, -1) < step < len(boxes):  # the bound ends a cycle
            steps[id] = step
            for source in sources[id]:
                raise_to(source, step + 1)

    for id in sorted(sources, key=lambda id: bool(users[id])):  # a cycle may have no result
        raise_to(id, steps.get(id, 0))
    rows = [[id for id in sources if steps[id] == step] for step in range(max(steps.values()) + 1)]
    widest = max(map(len, rows))
    places: dict[str, tuple[int, int]] = {}
    for step, row in enumerate(rows):
        at = {id: [places[user][0] for user in users[id] if user in places] for id in row}
        for column, id in enumerate(sorted(row, key=lambda id: fmean(at[id] or [0]))):
            x = EDGE + (2 * column + widest - len(row)) * (WIDE + GAP_X) // 2
            places[id] = x, EDGE + (len(rows) - 1 - step) * (HIGH + GAP_Y)
    return places


def _box(box: Box, x: int, y: int) -> str:
    short = box.label if len(box.label) <= MAX_LABEL else f"{box.label[:12]}…{box.label[-12:]}"
    return (
        f'<g class="node {escape(box.kind)}"><title>{escape(box.details)}</title>'
        f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="8"/>'
        f'<text x="{x + 12}" y="{y + 19}">{escape(short)}</text>'
        f'<text x="{x + 12}" y="{y + 36}" class="hash">{escape(box.small)}</text></g>'
    )


def _curve(source: tuple[int, int], target: tuple[int, int], role: str) -> str:
    """Return a curve down to the next row. One past several rows bows to the right, so that no box
    hides it.
    """
    rows = (target[1] - source[1]) // (HIGH + GAP_Y)
    if rows == 1:
        x1, y1, x2, y2 = source[0] + WIDE // 2, source[1] + HIGH, target[0] + WIDE // 2, target[1]
        bend = (y2 - y1) // 2
        line = f"M{x1},{y1} C{x1},{y1 + bend} {x2},{y2 - bend} {x2},{y2}"
    else:
        x1, y1 = source[0] + WIDE, source[1] + HIGH // 2
        x2, y2 = target[0] + WIDE, target[1] + HIGH // 2
        out = max(x1, x2) + BOW * abs(rows)
        line = f"M{x1},{y1} C{out},{y1} {out},{y2} {x2},{y2}"
    return f'<path class="edge" d="{line}"><title>{escape(role)}</title></path>'
