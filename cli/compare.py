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
    models: Sequence[str],
    benchmarks: Sequence[str],
    k: int,
    alpha: float,
    suspects: Path | None,
    to: Path | None,
    settings: Settings,
    console: Console,
) -> int:
    """Compare the first model with each other one. For a single model, report the differences that
    its benchmarks can detect. Raises NoScorecard and Incomparable.
    """
    store = settings.store
    cards_by_model = [[_cards(store, run) for run in each.split(",")] for each in models]
    benchmark_names = set(benchmarks) or {
        card.benchmark for runs in cards_by_model for run in runs for card in run
    } - {"validation"}
    names = _short_names(models)
    contestants = [
        Contestant(each, _common_cards(each, runs, cards_by_model, benchmark_names))
        for each, runs in zip(names, cards_by_model, strict=True)
    ]
    if unknown := sorted(
        benchmark_names - {name for contestant in contestants for name in contestant.cards}
    ):
        raise NoScorecard(
            f"no model has a score on {', '.join(unknown)}: evaluate on it first, or leave it out"
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
        "\n".join([*_notes(rows, alpha), *_partial_notes(contestants)]),
        highlight=False,
        soft_wrap=True,
    )
    if to:
        write_atomic(to, json.dumps([row.model_dump(mode="json") for row in rows], indent=1) + "\n")
    return 0


def _cards(store: Store, model: str) -> list[Scorecard]:
    """Return the scorecards of a file or folder, else all of a checkpoint in the store, the newest
    last. Raises NoScorecard.
    """
    if cards := at_path(model):
        return cards
    names = [name for name in store.names("scores") if name.rpartition("--")[0] == model]
    cards = [
        Scorecard.stored(version) for name in names for version in store.versions("scores", name)
    ]
    if not cards:
        scored = sorted(
            {name.rpartition("--")[0] for name in store.names("scores") if "--" in name}
        )
        known = f"one of {', '.join(scored)}" if scored else "evaluate a checkpoint first"
        raise NoScorecard(
            f"no scores of {model!r}: give a scorecard, a folder of scorecards, or {known} "
            "(`ratchet evaluate`)"
        )
    return cards


def _short_names(models: Sequence[str]) -> list[str]:
    """Return files' names without folder and ending, if these stay distinct."""
    names = [
        ",".join(short(run) if Path(run).expanduser().exists() else run for run in each.split(","))
        for each in models
    ]
    return names if len(set(names)) == len(set(models)) else list(models)


def _common_cards(
    name: str,
    runs: Sequence[Sequence[Scorecard]],
    cards_by_model: Sequence[Sequence[Sequence[Scorecard]]],
    benchmark_names: set[str],
) -> dict[str, tuple[Scorecard, ...]]:
    """Return a model's scorecards by benchmark, one for each run: the newest of a version that all
    models have, else the run's newest. Raises Incomparable.
    """
    chosen = {}
    for benchmark in sorted(benchmark_names):
        versions = [
            {c.benchmark_version for c in run if c.benchmark == benchmark}
            for each in cards_by_model
            for run in each
        ]
        common = set.intersection(*filter(None, versions)) if any(versions) else set()
        own = [[c for c in run if c.benchmark == benchmark] for run in runs]
        if not all(own):
            if any(own):
                without = name.split(",")[next(i for i, cards in enumerate(own) if not cards)]
                raise Incomparable(
                    f"{without} has no score on {benchmark}, but other runs of its recipe have: "
                    f"evaluate it there, or leave {benchmark} out"
                )
            continue
        chosen[benchmark] = tuple(
            ([c for c in cards if c.benchmark_version in common] or cards)[-1] for cards in own
        )
    return chosen


def _suspects(path: Path) -> dict[str, list[str]]:
    """Return the tasks of a `suspects.json` by benchmark. Raises NoScorecard for another file."""
    try:
        return {
            name: [row["task"] for row in rows]
            for name, rows in json.loads(path.read_text(encoding="utf-8")).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoScorecard(
            f"{path}: not a list of suspect tasks ({error}): give a dataset's suspects.json"
        ) from error


def _partial_notes(contestants: Sequence[Contestant]) -> list[str]:
    partial_tasks = {
        (c.name, name): len(card.partial)
        for c in contestants
        for name, cards in c.cards.items()
        for card in cards
        if card.partial
    }
    return [
        f"PARTIAL: {model} has no completion for {count} tasks of {name}; the others are compared."
        for (model, name), count in partial_tasks.items()
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
        "detects gains of",
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


def _notes(rows: Sequence[Row], alpha: float) -> list[str]:
    lines = [
        f"{len(rows)} tests with Holm's correction: the probability of any false verdict is at "
        f"most {alpha:g}."
    ]
    if any(row.smallest_gain is not None for row in rows):
        lines.append(
            "Detects gains of: the true gain, in points, that this number of tasks shows with "
            f"power 0.8 (one-sided, {alpha:g}, uncorrected)."
        )
    for row in rows:
        if row.clean and row.clean.before and row.clean.after:
            lines.append(
                f"{row.benchmark} without the {row.clean.left_out} tasks that resemble training "
                f"data: {row.first} {row.clean.before}, {row.other} {row.clean.after}."
            )
    return lines


def command(
    models: Annotated[
        list[str],
        typer.Argument(
            help=(
                "Scored checkpoints, scorecards, or folders of scorecards; several runs of a "
                "recipe joined by commas."
            )
        ),
    ],
    benchmark: Annotated[
        list[str] | None,
        typer.Option(help="Only this benchmark; repeatable. Default: all but validation."),
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="k of pass@k.")] = 1,
    alpha: Annotated[
        float,
        typer.Option(min=0.0001, max=0.5, help="Probability of any false verdict."),
    ] = 0.05,
    suspects: Annotated[
        Path | None,
        typer.Option(
            exists=True, help="A suspects.json. Default: that of this home's clean_problems."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Also write the rows as JSON.")] = None,
    profile: ProfileOption = None,
) -> None:
    """Compare models task by task, with intervals.

    The first model is compared with each other one, with Holm's correction. For a single model, the
    command reports which differences its benchmarks can detect.
    """
    raise typer.Exit(
        compare(models, benchmark or [], k, alpha, suspects, to, Settings.read(profile), Console())
    )
