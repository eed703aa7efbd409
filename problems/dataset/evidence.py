"""Write the reports of a dataset: findings, and the texts to compare.

HTML is for people, JSON is for programs. Files: `duplicates.json` (groups, which problem was kept
and why); `contamination.json` (each problem with all that it resembles), also as `.html`;
`suspects.json` (by benchmark, the tasks that a kept problem resembles, so that
evaluation can also give a score without them). The same problems give the same bytes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from html import escape
from pathlib import Path
from typing import Any

from artifacts.store import Store
from problems.cleaning.contamination import Overlap
from problems.cleaning.curation import Curated
from problems.cleaning.duplicates import DuplicateGroup
from problems.dataset.rows_json import json_list

DUPLICATES, CONTAMINATION, SUSPECTS = "duplicates.json", "contamination.json", "suspects.json"
# characters of a text, and pairs, on the page; the JSON has everything
MAX_SHOWN, MAX_PAIRS = 4000, 300
STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 "
    "1em;color:#1a1a1a}table{width:100%;table-layout:fixed;"
    "border-collapse:collapse}td,th{vertical-align:top;padding:.5em;border:1px solid "
    "#ddd;text-align:left}pre{white-space:pre-wrap;overflow-wrap:"
    "anywhere;margin:0;font:13px/1.4 "
    "ui-monospace,monospace}mark{background:#ffe58a}h2{font-size:1.05em;margin:2em 0 .4em}"
)


@dataclass(frozen=True)
class Evidence:
    """Why problems were removed or are suspect.

    removed: ids of removed problems, at least of those that overlap. groups: read once. suspects,
    capped, uncompared: see `Curated` and `Duplicates`.
    """

    overlaps: Sequence[Overlap]
    removed: Set[str]
    suspects: Mapping[str, Sequence[Mapping[str, str]]]
    groups: Iterable[DuplicateGroup]
    capped: int
    uncompared: int


def evidence_of(curated: Curated) -> Evidence:
    return Evidence(
        curated.overlaps,
        {row.problem_id for row in curated.removed},
        curated.suspects,
        curated.duplicates.groups,
        curated.duplicates.capped,
        curated.duplicates.uncompared,
    )


def write_evidence(evidence: Evidence, folder: Path) -> None:
    """Write all reports of a curated set to an existing folder."""
    with (folder / DUPLICATES).open("w", encoding="utf-8") as file:
        file.write('{\n "groups": ')
        file.writelines(json_list(map(asdict, evidence.groups), depth=2))
        file.write(f',\n "capped": {evidence.capped},\n "uncompared": {evidence.uncompared}\n}}\n')
    for name, content in (
        (CONTAMINATION, _json(by_problem(evidence.overlaps, evidence.removed))),
        (SUSPECTS, _json(evidence.suspects)),
        (str(Path(CONTAMINATION).with_suffix(".html")), contamination_page(evidence.overlaps)),
    ):
        (folder / name).write_text(content, encoding="utf-8")


def read_suspects(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Read each benchmark's suspect tasks, with the problems that make them suspect.

    The keys of a row are task, problem_id and how. Raises FileNotFoundError.
    """
    lists: dict[str, list[dict[str, str]]] = json.loads(
        (folder / SUSPECTS).read_text(encoding="utf-8")
    )
    return lists


def suspects_of(store: Store) -> dict[str, tuple[str, ...]]:
    """Return each benchmark's tasks that a problem in the current training data resembles.

    Empty if there is no contamination report.
    """
    clean = store.current("datasets", "clean_problems")
    if clean is None or not (clean.path / SUSPECTS).exists():
        return {}
    return {
        name: tuple(sorted({row["task"] for row in rows}))
        for name, rows in read_suspects(clean.path).items()
    }


def by_problem(overlaps: Sequence[Overlap], removed: Set[str]) -> list[dict[str, Any]]:
    """Return one report per problem, ordered by id.

    It says whether the problem was removed, and lists each gated task that it resembles, with both
    texts.
    """
    reports: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for overlap in sorted(
        overlaps, key=lambda overlap: (overlap.problem_id, overlap.gated_id, overlap.kind)
    ):
        reports[overlap.problem_id].append(
            {name: value for name, value in asdict(overlap).items() if name != "problem_id"}
        )
    return [
        {"problem_id": problem_id, "removed": problem_id in removed, "resembles": rows}
        for problem_id, rows in reports.items()
    ]


def _leaks_first(overlaps: Sequence[Overlap]) -> list[Overlap]:
    return sorted(overlaps, key=lambda o: (not o.leak, o.problem_id, o.gated_id, o.kind))


def contamination_page(overlaps: Sequence[Overlap]) -> str:
    """Return an HTML page with both texts side by side and shared parts marked."""
    leaks = sum(overlap.leak for overlap in overlaps)
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Contamination</title>',
        f"<style>{STYLE}</style><h1>Contamination</h1>",
        (
            f"<p>{leaks} likenesses for which a problem was removed, {len(overlaps) - leaks} that "
            "make a gated task suspect.</p>"
        ),
    ]
    ordered = _leaks_first(overlaps)
    for o in ordered[:MAX_PAIRS]:
        mine, theirs = _marked(o.mine, o.theirs)
        parts.append(
            f"<h2>{escape(o.kind)} {escape(o.detail)}: "
            f"{'removed' if o.leak else 'suspect'}</h2><table><tr><th>{escape(o.problem_id)}</th>"
            f"<th>{escape(o.gated_id)}</th></tr><tr><td><pre>{mine}</pre></td><td><pre>{theirs}</pre></td></tr></table>"
        )
    if len(ordered) > MAX_PAIRS:
        parts.append(f"<p>{len(ordered) - MAX_PAIRS} more are in {CONTAMINATION}.</p>")
    return "\n".join([*parts, "</html>\n"])


def _marked(mine: str, theirs: str) -> tuple[str, str]:
    """Return both texts as HTML, with shared runs of at least three words marked."""
    one, two = (re.findall(r"\S+\s*", text[:MAX_SHOWN]) for text in (mine, theirs))
    matcher = SequenceMatcher(
        None,
        [word.strip().lower() for word in one],
        [word.strip().lower() for word in two],
        autojunk=False,
    )
    blocks = [block for block in matcher.get_matching_blocks() if block.size >= 3]
    return _mark(one, [(block.a, block.size) for block in blocks]), _mark(
        two, [(block.b, block.size) for block in blocks]
    )


def _mark(words: list[str], runs: list[tuple[int, int]]) -> str:
    parts, done = [], 0
    for start, size in runs:
        parts += [
            escape("".join(words[done:start])),
            f"<mark>{escape(''.join(words[start : start + size]))}</mark>",
        ]
        done = start + size
    return "".join([*parts, escape("".join(words[done:]))])


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
