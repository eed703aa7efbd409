"""`ratchet data show` and `ratchet data diff`: show datasets, problems and their history."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from artifacts.fact_texts import fact_texts
from artifacts.store import Artifact, Store
from assets.stages import PREPARING
from cli.display.screen import code, print_json
from cli.lookup.damage import Damage
from pipelines.watch.text import print_text
from problems.funnel import Stage, read_removed
from problems.schema import Problem
from resources.home import Home, NotReady
from resources.settings import Settings

READS = "the next `ratchet data build`, `ratchet demo` or `ratchet train`"
MAX_ROWS, MAX_TESTS = 20, 10  # on a terminal; a pipe or a file gets all
MAX_EXAMPLE = 200  # characters


def show(
    problem_id: str | None, settings: Settings, console: Console, *, as_json: bool = False
) -> int:
    """Print the current datasets and what each stage removed, or one problem with its history.

    Return 2 if a dataset is damaged or the problem unknown, else 0. Raises NotReady before a first
    run.
    """
    store, damage = settings.store, Damage()
    artifacts = damage.whole(store, PREPARING)
    if not artifacts and (code := damage.exit_code()):
        return code
    if as_json and artifacts:
        with damage.collected():
            print_json(
                _facts(artifacts)
                if problem_id is None
                else asdict(_find(artifacts, problem_id, settings))
            )
        return damage.exit_code()
    unread = _unread(artifacts.get("raw_problems"), settings.home)
    if not artifacts and (problem_id is not None or not unread):
        raise NotReady(f"no problems have been read yet: {READS} reads them")
    for name, place in unread.items():
        print_text(console, f"{name} ({place}) has not been read yet: {READS} reads it")
    with damage.collected():
        console.print(
            datasets(artifacts)
            if problem_id is None
            else _problem(
                artifacts,
                store,
                _find(artifacts, problem_id, settings),
                console,
                damage,
            )
        )
    return damage.exit_code()


def diff(before: str, after: str, settings: Settings, console: Console) -> int:
    """Print the differences between two versions of a dataset: counts by source, then the added,
    removed (with reasons) and changed problems. Raises ProblemError for an unknown version.
    """
    from problems.dataset.diff import compare, find_dataset

    store = settings.store
    one, other = find_dataset(store, before), find_dataset(store, after)
    changes = compare(store, one, other)
    for mark, artifact in (("from", one), ("to", other)):
        manifest = artifact.manifest
        print_text(
            console,
            f"{mark:>4} {manifest.name} {artifact.content_hash[:12]}, {manifest.created_at}",
        )
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    for head in ("source", "before", "after", "added", "removed", "changed"):
        table.add_column(head, justify="left" if head == "source" else "right")
    parts = [
        Counter(key.partition("/")[0] for key in keys)
        for keys in (changes.added, changes.removed, changes.changed)
    ]
    for source, (old, new) in changes.counts.items():
        table.add_row(source, str(old), str(new), *(str(part[source] or "·") for part in parts))
    console.print()
    console.print(table)
    _list(console, "added", "green", "+", [(key, "") for key in changes.added])
    _list(console, "removed", "red", "−", list(changes.removed.items()))
    _list(
        console,
        "changed",
        "yellow",
        "~",
        [(key, ", ".join(columns)) for key, columns in changes.changed.items()],
    )
    if not (changes.added or changes.removed or changes.changed):
        console.print("\nNo differences.")
    return 0


def _list(
    console: Console, title: str, style: str, mark: str, rows: Sequence[tuple[str, str]]
) -> None:
    if not rows:
        return
    most = MAX_ROWS if console.is_terminal else len(rows)
    reasons = Counter(reason.partition(":")[0] for _, reason in rows if reason)
    counts_text = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common(5))
    print_text(
        console,
        f"\n[bold]{len(rows)} {title}[/]{f'  [dim]{counts_text}[/]' if counts_text else ''}",
    )
    for key, reason in rows[:most]:
        print_text(console, Text.assemble((f" {mark} ", style), key, (f"  {reason}", "dim")))
    if len(rows) > most:
        console.print(
            f"   … and {len(rows) - most} more: `ratchet data diff … | cat` shows all",
            style="dim",
            highlight=False,
        )


def _facts(artifacts: dict[str, Artifact]) -> dict[str, Any]:
    """Return hash, facts and reasons of removal of each dataset."""
    stages = {stage.name: stage for stage in _stages(artifacts)}
    return {
        name: {
            "hash": artifact.content_hash,
            "facts": artifact.manifest.facts,
            "removed": dict(stages[name].reasons) if name in stages else {},
        }
        for name, artifact in artifacts.items()
    }


def _find(artifacts: dict[str, Artifact], problem_id: str, settings: Settings) -> Problem:
    """Return a problem of a dataset, or a held-out task of the embedded family, which no dataset
    holds. Raises ProblemError.
    """
    from problems.dataset.history import find
    from problems.embedded.heldout import heldout_tasks

    if drawn := re.fullmatch(r"embedded/heldout/(\d+)/(\d+)", problem_id):
        seed, number = map(int, drawn.groups())
        family = settings.profile.family.model_copy(update={"seed": seed})
        return heldout_tasks(family, number, 1)[0]
    return find(artifacts, problem_id)


def _problem(
    artifacts: dict[str, Artifact], store: Store, problem: Problem, console: Console, damage: Damage
) -> RenderableType:
    """Return a view of the problem; on a terminal long tests are truncated."""
    from problems.dataset.history import history

    short, rankings = console.is_terminal, list[Artifact]()
    with damage.collected():
        rankings = store.versions("datasets", "difficulty_rankings")
    marks = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("", "")}
    steps = Table.grid(padding=(0, 2, 0, 0))
    steps.add_column(width=1)
    steps.add_column(style="bold", no_wrap=True)
    steps.add_column(overflow="fold")
    for step in history(artifacts, rankings, problem):
        mark, style = marks[step.went]
        steps.add_row(
            Text(mark, style=style),
            step.stage,
            Text(step.result, style="" if step.went is not None else "dim"),
        )
    limits = problem.limits
    facts = (
        f"{problem.style} · {len(problem.tests)} tests, {problem.visible_tests} visible · "
        f"{limits.cpu_s:g} s of CPU, {limits.memory_mb} MiB"
    )
    tags = f" · {', '.join(problem.tags)}" if problem.tags else ""
    programs = {
        "starter code": problem.starter_code,
        **{
            f"solution {number} of {len(problem.solutions)}": text
            for number, text in enumerate(problem.solutions, 1)
        },
        "tests": _tests(problem, short),
    }
    parts = [
        _part(
            problem.problem_id,
            Group(Text(f"{facts}{tags}", style="dim"), "", Text(problem.statement.strip())),
            short,
        ),
        *(
            _part(title, code(text, console), short)
            for title, text in programs.items()
            if text.strip()
        ),
        _part("history", steps, short),
    ]
    return Group(*parts)


def _part(title: str, content: RenderableType, framed: bool) -> RenderableType:
    """Return a part of a view: in a frame on a terminal, below its title elsewhere."""
    if framed:
        return Panel(content, title=Text(title), border_style="dim", padding=(0, 1))
    return Group(Text(f"# {title}"), content, "")


def _tests(problem: Problem, short: bool) -> str:
    from problems.prompt import shown_test

    most = MAX_TESTS if short else len(problem.tests)
    texts = [shown_test(problem, test) for test in problem.tests[:most]]
    texts = [text if len(text) <= 400 or not short else f"{text[:400]}…" for text in texts]
    more = f"\n# … and {len(problem.tests) - most} more" if len(problem.tests) > most else ""
    return ("\n" if problem.kind.has_entry_point else "\n\n").join(texts) + more


def _unread(raw: Artifact | None, home: Home) -> dict[str, str]:
    """Return the sources that were added since the problems were read, with their places."""
    from problems.catalogue import read_sources

    return {
        name: str(place)
        for name, place in read_sources(home.path).items()
        if raw is None or name not in raw.manifest.inputs
    }


def datasets(artifacts: dict[str, Artifact]) -> RenderableType:
    """Return the datasets, then the counts of each stage with an example for each reason.

    The view fits in 80 columns.
    """
    lines: list[RenderableType] = []
    for name, artifact in artifacts.items():
        lines += [
            Text.assemble((name, "bold"), f"  {artifact.content_hash[:12]}"),
            _under(4, ", ".join(fact_texts(artifact.manifest.facts))),
        ]
    for stage in _stages(artifacts):
        counts = f"  {stage.came_in} in, {stage.went_out} out, {len(stage.removed)} removed"
        lines += ["", Text.assemble((stage.name, "bold"), counts)]
        first = {row.reason: row for row in reversed(stage.removed)}
        for reason, count in stage.reasons.most_common():
            example = " ".join(f"{first[reason].problem_id} {first[reason].detail}".split())
            cut = example if len(example) <= MAX_EXAMPLE else f"{example[: MAX_EXAMPLE - 1]}…"
            lines += [Text(f"{count:>8}  {reason}"), _under(10, f"e.g. {cut}")]
    return Group(*lines)


def _under(indent: int, text: str) -> Padding:
    return Padding.indent(Text(text, style="dim", overflow="fold"), indent)


def _stages(artifacts: dict[str, Artifact]) -> list[Stage]:
    return [
        Stage.of(name, artifacts[name].manifest.facts, read_removed(artifacts[name].path))
        for name in PREPARING[1:]
        if name in artifacts
    ]
