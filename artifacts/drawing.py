"""Draw a passport as one SVG: boxes in rows, inputs above what was made of them, curves between."""

from __future__ import annotations

from html import escape

from artifacts.passport import Node, Passport

WIDE, HIGH, GAP_X, GAP_Y, EDGE, BOW = 210, 46, 24, 34, 20, 22
COLOURS = {
    "datasets": "#e3eefb",
    "checkpoints": "#fdeccb",
    "scores": "#e0f3e3",
    "version": "#f3e0f0",
    "input": "#f2f2f2",
}
STYLE = (
    "text{font:12px "
    "system-ui,sans-serif;fill:#222}.small{font-size:10px;fill:#666}rect{stroke:#999}path{fill:none;stroke:#aaa}"
    ".missing rect{stroke:#c00;stroke-dasharray:4}"
)


def svg(passport: Passport) -> str:
    """Return the SVG. Tooltips show the facts of a box and the role of a curve."""
    places = _places(passport)
    rows = [y for _, y in places.values()]
    longest = (max(rows) - min(rows)) // (HIGH + GAP_Y)
    width = max(x for x, _ in places.values()) + WIDE + BOW * longest + EDGE
    height = max(y for _, y in places.values()) + HIGH + EDGE
    curves = [
        _curve(places[source], places[node.id], role)
        for node in passport.nodes
        for role, source in node.made_from
    ]
    boxes = [_box(node, *places[node.id]) for node in passport.nodes]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">'
    )
    paper = '<rect width="100%" height="100%" fill="#fff" style="stroke:none"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, *curves, *boxes, "</svg>"])


def page(passport: Passport) -> str:
    """Return an HTML page with the picture and the most important facts."""
    facts = {name: value for name, value in passport.summary().items() if name != "config"}
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(_plain(value))}</td></tr>"
        for name, value in facts.items()
    )
    style = (
        "body{font:14px "
        "system-ui,sans-serif;margin:2em}th{text-align:left;padding-right:1em;vertical-align:top}td{word-break:break-word}"
    )
    title = f"Provenance of {escape(passport.subject)}"
    return (
        '<!doctype html><html lang="en"><meta '
        f'charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"<h1>{title}</h1><table>{rows}</table>{svg(passport)}</html>"
    )


def _places(passport: Passport) -> dict[str, tuple[int, int]]:
    """Return the nodes in rows: by the longest path to the subject, which is in the last row;
    within a row near what was made of them.
    """
    depth: dict[str, int] = {}

    def deepen(node: Node, at: int) -> None:
        if depth.get(node.id, -1) < at <= len(passport.nodes):
            depth[node.id] = at
            for _, source in node.made_from:
                deepen(passport.node(source), at + 1)

    deepen(passport.nodes[0], 0)
    users: dict[str, list[str]] = {}
    for node in passport.nodes:
        for _, source in node.made_from:
            users.setdefault(source, []).append(node.id)
    lowest = max(depth.values())
    places: dict[str, tuple[int, int]] = {}
    for row in range(lowest + 1):
        below = {
            node.id: [places[user][0] for user in users.get(node.id, []) if user in places]
            for node in passport.nodes
            if depth[node.id] == row
        }
        ordered = sorted(
            below, key=lambda id: sum(below[id]) / len(below[id]) if below[id] else 0.0
        )
        for column, id in enumerate(ordered):
            places[id] = (EDGE + column * (WIDE + GAP_X), EDGE + (lowest - row) * (HIGH + GAP_Y))
    return places


def _box(node: Node, x: int, y: int) -> str:
    colour = COLOURS.get(node.kind, COLOURS["input"])
    title = escape(f"{node.kind}/{node.name}\n{node.content_hash}\n{node.facts_line}")
    small = "missing" if node.missing else f"{node.kind} {node.content_hash[:12]}"
    return (
        f'<g class="{"missing" if node.missing else node.kind}"><title>{title}</title>'
        f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="6" fill="{colour}"/>'
        f'<text x="{x + 10}" y="{y + 19}">{escape(_fitting(node.name))}</text>'
        f'<text x="{x + 10}" y="{y + 36}" class="small">{escape(small)}</text></g>'
    )


def _fitting(name: str) -> str:
    return name if len(name) <= 30 else f"{name[:14]}…{name[-15:]}"


def _curve(source: tuple[int, int], target: tuple[int, int], role: str) -> str:
    """Return a curve down to the next row; it bows to the right of rows in between."""
    rows = (target[1] - source[1]) // (HIGH + GAP_Y)
    if rows == 1:
        x1, y1, x2, y2 = source[0] + WIDE // 2, source[1] + HIGH, target[0] + WIDE // 2, target[1]
        bend = (y2 - y1) // 2
        line = f"M{x1},{y1} C{x1},{y1 + bend} {x2},{y2 - bend} {x2},{y2}"
    else:
        x1, y1, x2, y2 = (
            source[0] + WIDE,
            source[1] + HIGH // 2,
            target[0] + WIDE,
            target[1] + HIGH // 2,
        )
        out = max(x1, x2) + BOW * rows
        line = f"M{x1},{y1} C{out},{y1} {out},{y2} {x2},{y2}"
    return f'<path d="{line}"><title>{escape(role)}</title></path>'


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {entry}" for name, entry in value.items()) or "none"
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
