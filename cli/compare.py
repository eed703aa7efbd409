"""Compare models task by task, with intervals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from artifacts.atomic import write_atomic
from artifacts.store import Store
from cli.options import ProfileOption
from cli.scorecards import NoScorecard, at_path, short
from evaluation.promotion.comparison import Incomparable, p_text, points, signed
from evaluation.reports.compare_models import Contestant, Row, can_show, compare_models
from evaluation.scorecard import Scorecard
from problems.dataset.evidence import suspects_of
from resources.settings import Settings

GROUP = "Evaluate"


def compare(
    named: Sequence[str],
    benchmarks: Sequence[str],
    k: int,
    alpha: float,
    suspects: Path | None,
    to: Path | None,
    settings: Settings,
    console: Console,
) -> int:
    """Compare the first with each other one; for a single one, report what its benchmarks can show.
    Raises NoScorecard and Incomparable.
    """
    store = settings.store
    cards_by_model = [[_cards(store, run) for run in each.split(",")] for each in named]
    benchmark_names = set(benchmarks) or {
        card.benchmark for runs in cards_by_model for run in runs for card in run
    } - {"validation"}
    names = _short(named)
    contestants = [
        Contestant(each, _on_same_tasks(each, runs, cards_by_model, benchmark_names))
        for each, runs in zip(names, cards_by_model, strict=True)
    ]
    if unknown := sorted(
        benchmark_names - {name for contestant in contestants for name in contestant.cards}
    ):
        raise NoScorecard(
            f"nobody here has a score on {', '.join(unknown)}: leave it out of --benchmark, "
            "or evaluate on it first"
        )
    if len(contestants) == 1:
        console.print(
            "\n".join(can_show(contestants[0], k=k, alpha=alpha)), highlight=False, soft_wrap=True
        )
        return 0
    rows = compare_models(
        contestants,
        k=k,
        alpha=alpha,
        suspects=_suspects(suspects) if suspects else suspects_of(store),
    )
    console.print(_table(rows, k, alpha))
    console.print(
        "\n".join([*_told(rows, alpha), *_partial(contestants)]), highlight=False, soft_wrap=True
    )
    if to:
        write_atomic(to, json.dumps([row.model_dump(mode="json") for row in rows], indent=1) + "\n")
    return 0


def _cards(store: Store, named: str) -> list[Scorecard]:
    """Return all scorecards of a checkpoint in the store, the newest last; or those of a file or
    folder.
    """
    if cards := at_path(named):
        return cards
    names = [name for name in store.names("scores") if name.rpartition("--")[0] == named]
    cards = [
        Scorecard.stored(version) for name in names for version in store.versions("scores", name)
    ]
    if not cards:
        scored = sorted(
            {name.rpartition("--")[0] for name in store.names("scores") if "--" in name}
        )
        mend = f"one of {', '.join(scored)}" if scored else "score it first, for this home has none"
        raise NoScorecard(
            f"no scores of {named!r}: give a scorecard's file or folder, or {mend}; `ratchet "
            "evaluate` makes them"
        )
    return cards


def _short(named: Sequence[str]) -> list[str]:
    """Files by their names without folder and ending, where that tells them apart."""
    names = [
        ",".join(short(run) if Path(run).expanduser().exists() else run for run in each.split(","))
        for each in named
    ]
    return names if len(set(names)) == len(set(named)) else list(named)


def _on_same_tasks(
    name: str,
    runs: Sequence[Sequence[Scorecard]],
    everybody: Sequence[Sequence[Sequence[Scorecard]]],
    benchmark_names: set[str],
) -> dict[str, tuple[Scorecard, ...]]:
    """Return one card for each run and benchmark: of several draws the newest that all have in
    common, else each one's newest.
    """
    chosen = {}
    for benchmark in sorted(benchmark_names):
        versions = [
            {c.benchmark_version for c in run if c.benchmark == benchmark}
            for each in everybody
            for run in each
        ]
        common = set.intersection(*filter(None, versions)) if any(versions) else set()
        own = [[c for c in run if c.benchmark == benchmark] for run in runs]
        if not all(own):
            if any(own):
                without = name.split(",")[next(i for i, cards in enumerate(own) if not cards)]
                raise Incomparable(
                    f"{without} has no score on {benchmark}, other runs of its recipe have: "
                    f"evaluate it there, or leave {benchmark} out"
                )
            continue
        chosen[benchmark] = tuple(
            ([c for c in cards if c.benchmark_version in common] or cards)[-1] for cards in own
        )
    return chosen


def _suspects(path: Path) -> dict[str, list[str]]:
    """By benchmark, the tasks in a `suspects.json`."""
    try:
        return {
            name: [row["task"] for row in rows]
            for name, rows in json.loads(path.read_text(encoding="utf-8")).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoScorecard(
            f"{path}: no list of suspect tasks ({error}): give the suspects.json beside a "
            "dataset's contamination report"
        ) from error


def _partial(contestants: Sequence[Contestant]) -> list[str]:
    partial_tasks = {
        (c.name, name): len(card.partial)
        for c in contestants
        for name, cards in c.cards.items()
        for card in cards
        if card.partial
    }
    return [
        f"PARTIAL: {count} tasks of {name} have no answer of {who}; compared are the others."
        for (who, name), count in partial_tasks.items()
    ]


def _table(rows: Sequence[Row], k: int, alpha: float) -> Table:
    table = Table(
        "benchmark",
        "tasks",
        "first",
        "other",
        f"pass@{k}",
        "difference (95 %)",
        "won, lost",
        "p",
        "p (Holm)",
        "verdict",
        "sees gains of",
    )
    for row in rows:
        runs = "" if row.runs == (1, 1) else f" ({row.runs[0]} and {row.runs[1]} runs)"
        table.add_row(
            row.benchmark,
            f"{row.tasks}{runs}",
            row.first,
            row.other,
            f"{points(row.before)} → {points(row.after)} %",
            f"{signed(row.difference)} ({signed(row.low)} to {signed(row.high)})",
            f"{row.won}, {row.lost}",
            p_text(row.p).removeprefix("p = "),
            p_text(row.p_holm).removeprefix("p = "),
            row.verdict(alpha),
            f"{points(row.smallest_gain)}" if row.smallest_gain is not None else "",
        )
    return table


def _told(rows: Sequence[Row], alpha: float) -> list[str]:
    lines = [
        (
            f"{len(rows)} tests, corrected together (Holm), so that the chance of one false "
            f"verdict among all is at most {alpha:g}."
        )
    ]
    if any(row.smallest_gain is not None for row in rows):
        lines.append(
            "Sees gains of: the true gain, in points, that so many tasks show four times in "
            f"five (one-sided, {alpha:g}, uncorrected)."
        )
    for row in rows:
        if row.clean and row.clean.before and row.clean.after:
            lines.append(
                f"{row.benchmark} without the {row.clean.left_out} tasks that resemble "
                f"something in the training data: {row.first} "
                f"{row.clean.before}, {row.other} {row.clean.after}."
            )
    return lines


def command(
    models: Annotated[
        list[str],
        typer.Argument(
            help=(
                "Scored checkpoints, or scorecards' files or folders; runs of a recipe joined by "
                "commas."
            )
        ),
    ],
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this benchmark; may be given again. Without it all but validation."
        ),
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="Compare pass@k.")] = 1,
    alpha: Annotated[
        float,
        typer.Option(
            min=0.0001, max=0.5, help="Chance of one false verdict among all that are given."
        ),
    ] = 0.05,
    suspects: Annotated[
        Path | None,
        typer.Option(
            exists=True, help="A suspects.json; without it that of this home's clean_problems."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Write the rows as JSON, too.")] = None,
    profile: ProfileOption = None,
) -> None:
    """Compare models task by task, with intervals.

    The first model is compared with each other one, with Holm's correction. For a single model:
    which differences its benchmarks could detect.
    """
    raise typer.Exit(
        compare(models, benchmark or [], k, alpha, suspects, to, Settings.read(profile), Console())
    )
