"""A passport as a picture: boxes in columns from what was there first to what came of it, curves between them. One SVG, without a library."""

from __future__ import annotations

from html import escape

from artifacts.passport import Made, Passport

WIDE, HIGH, GAP_X, GAP_Y, EDGE = 210, 46, 90, 16, 20
COLOURS = {"datasets": "#e3eefb", "checkpoints": "#fdeccb", "scores": "#e0f3e3", "version": "#f3e0f0", "input": "#f2f2f2"}
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.small{font-size:10px;fill:#666}rect{stroke:#999}path{fill:none;stroke:#aaa}"
    ".missing rect{stroke:#c00;stroke-dasharray:4}"
)


def svg(passport: Passport) -> str:
    """Hover over a box to read its facts, over a curve to read the role."""
    places = _places(passport)
    width = max(x for x, _ in places.values()) + WIDE + EDGE
    height = max(y for _, y in places.values()) + HIGH + EDGE
    curves = [_curve(places[source], places[node.id], role) for node in passport.nodes for role, source in node.made_from]
    boxes = [_box(node, *places[node.id]) for node in passport.nodes]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    paper = '<rect width="100%" height="100%" fill="#fff" style="stroke:none"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, *curves, *boxes, "</svg>"])


def page(passport: Passport) -> str:
    """The picture in a page of its own, with the facts that are asked for first."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in passport.summary().items() if name != "config")
    style = "body{font:14px system-ui,sans-serif;margin:2em}th{text-align:left;padding-right:1em;vertical-align:top}td{word-break:break-word}"
    title = f"Provenance of {escape(passport.subject)}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"<h1>{title}</h1><table>{rows}</table>{svg(passport)}</html>"
    )


def _places(passport: Passport) -> dict[str, tuple[int, int]]:
    """Columns by the longest way to the subject; within a column near what was made of them."""
    depth: dict[str, int] = {}

    def deepen(node: Made, at: int) -> None:
        if depth.get(node.id, -1) < at <= len(passport.nodes):
            depth[node.id] = at
            for _, source in node.made_from:
                deepen(passport.node(source), at + 1)

    deepen(passport.nodes[0], 0)
    columns = max(depth.values())
    users: dict[str, list[str]] = {}
    for node in passport.nodes:
        for _, source in node.made_from:
            users.setdefault(source, []).append(node.id)
    rows: dict[str, float] = {}
    places: dict[str, tuple[int, int]] = {}
    for column in range(columns + 1):
        here = [node.id for node in passport.nodes if depth[node.id] == column]
        above = {content: [rows[user] for user in users.get(content, []) if user in rows] for content in here}
        here.sort(key=lambda content: sum(above[content]) / len(above[content]) if above[content] else 0.0)
        for row, content in enumerate(here):
            rows[content] = row / max(len(here) - 1, 1)
            places[content] = (EDGE + (columns - column) * (WIDE + GAP_X), EDGE + row * (HIGH + GAP_Y))
    return places


def _box(node: Made, x: int, y: int) -> str:
    colour = COLOURS.get(node.kind, COLOURS["input"])
    title = escape(f"{node.kind}/{node.name}\n{node.content_hash}\n{node.says}")
    small = "nowhere any more" if node.missing else f"{node.kind} {node.content_hash[:12]}"
    return (
        f'<g class="{"missing" if node.missing else node.kind}"><title>{title}</title>'
        f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="6" fill="{colour}"/>'
        f'<text x="{x + 10}" y="{y + 19}">{escape(_fitting(node.name))}</text>'
        f'<text x="{x + 10}" y="{y + 36}" class="small">{escape(small)}</text></g>'
    )


def _fitting(name: str) -> str:
    return name if len(name) <= 30 else f"{name[:14]}…{name[-15:]}"


def _curve(source: tuple[int, int], target: tuple[int, int], role: str) -> str:
    x1, y1, x2, y2 = source[0] + WIDE, source[1] + HIGH // 2, target[0], target[1] + HIGH // 2
    bend = (x2 - x1) // 2
    return f'<path d="M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"><title>{escape(role)}</title></path>'
