"""A lineage graph as SVG: a row for each step away from the raw problems, the result at the bottom.

In: links by name. Out: SVG without colours of its own: the page's style has them (`.node`,
`.edge`), so that it is readable in light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from evaluation.reports.facts import Link

WIDE, HIGH, GAP_X, GAP_Y, EDGE = 214, 44, 26, 30, 2
BOW = 34  # sideways distance of a curve that passes a row
MOST = 25  # characters of a name that fit a box


def picture(links: Sequence[Link]) -> str:
    """Draw boxes with name and content, and a curve from each to what was made of it; a tooltip
    shows the details of a box.
    """
    rows = _rows(links)
    down = {link.name: number for number, row in enumerate(rows) for link in row}
    edges = [
        (source, link.name)
        for link in links
        for source in link.made_from
        if source in down and source != link.name
    ]
    reach = max((down[target] - down[source] for source, target in edges), default=1)
    aside = (BOW * min(reach, 4) + EDGE) if reach > 1 else 0  # space for curves that pass rows
    width = 2 * (EDGE + aside) + max(len(row) for row in rows) * (WIDE + GAP_X) - GAP_X
    height = 2 * EDGE + len(rows) * (HIGH + GAP_Y) - GAP_Y
    places = {
        link.name: (
            (width - len(row) * (WIDE + GAP_X) + GAP_X) // 2 + at * (WIDE + GAP_X),
            EDGE + number * (HIGH + GAP_Y),
        )
        for number, row in enumerate(rows)
        for at, link in enumerate(row)
    }
    curves = [
        _curve(places[source], places[target], down[target] - down[source])
        for source, target in edges
    ]
    boxes = [_box(link, *places[link.name]) for link in links]
    head = (
        f'<svg class="lineage" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-label="what was made from what">'
    )
    return "".join([head, *curves, *boxes, "</svg>"])


def _rows(links: Sequence[Link]) -> list[list[Link]]:
    """Return rows by the longest path from a root; within a row beside their inputs."""
    known = {link.name: link for link in links}
    depths: dict[str, int] = {}

    def depth(name: str, below: frozenset[str] = frozenset()) -> int:
        if name not in depths:
            sources = [
                source
                for source in known[name].made_from
                if source in known and source not in below | {name}
            ]
            depths[name] = 1 + max(
                (depth(source, below | {name}) for source in sources), default=-1
            )
        return depths[name]

    rows: list[list[Link]] = [[] for _ in range(1 + max(depth(name) for name in known))]
    for link in known.values():
        rows[depths[link.name]].append(link)
    at: dict[str, float] = {}
    for row in rows:
        row.sort(
            key=lambda link: _middle([at[source] for source in link.made_from if source in at])
        )
        at |= {link.name: (number + 0.5) / len(row) for number, link in enumerate(row)}
    return rows


def _middle(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.5


def _box(link: Link, x: int, y: int) -> str:
    name = link.name if len(link.name) <= MOST else f"{link.name[: MOST - 1]}…"
    title = escape(f"{link.kind}/{link.name}\n{link.content_hash}\n{link.said}")
    box = f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="9"/>'
    return (
        f'<g class="node {escape(link.kind)}"><title>{title}</title>{box}'
        f'<text x="{x + 13}" y="{y + 19}">{escape(name)}</text>'
        f'<text x="{x + 13}" y="{y + 35}" class="hash">{escape(link.content_hash[:12])}</text></g>'
    )


def _curve(source: tuple[int, int], target: tuple[int, int], rows: int) -> str:
    """Return a curve down to the next row. A curve past several rows bows to the right, so that no
    box hides it.
    """
    if rows > 1:
        x1, y1, x2, y2 = (
            source[0] + WIDE,
            source[1] + HIGH // 2,
            target[0] + WIDE,
            target[1] + HIGH // 2,
        )
        out = max(x1, x2) + BOW * min(rows, 4)
        return f'<path class="edge" d="M{x1},{y1} C{out},{y1} {out},{y2} {x2},{y2}"/>'
    x1, y1, x2, y2 = source[0] + WIDE // 2, source[1] + HIGH, target[0] + WIDE // 2, target[1]
    bend = (y2 - y1) // 2
    return f'<path class="edge" d="M{x1},{y1} C{x1},{y1 + bend} {x2},{y2 - bend} {x2},{y2}"/>'
