"""Compare models task by task, with intervals."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from artifacts.atomic import write_atomic
from artifacts.store import Store
from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.display.comparison_table import differences, limits, notes, print_rows
from cli.display.screen import screen
from cli.lookup.damage import Damage
from cli.lookup.scorecards import NoScorecard, at_path, by_tests, is_path, short
from evaluation.promotion.rate import Incomparable
from evaluation.reports.compare_models import ComparedModel, can_show, compare_models
from evaluation.scorecard import Scorecard
from pipelines.watch.text import print_text
from problems.dataset.evidence import suspects_of
from resources.registry.mlflow import aliases_of
from resources.registry.versions import ALIASES
from resources.settings import Settings


def compare(
    models: Sequence[str],
    benchmarks: Sequence[str],
    *,
    k: int,
    alpha: float,
    suspects: Path | None,
    to: Path | None,
    settings: Settings,
    console: Console,
    metrics: Sequence[str] = (),
    power: float = 0.8,
) -> int:
    """Compare the first model with each other one. For a single model, report the differences that
    its benchmarks can detect. Return 2 if the list of suspect tasks is damaged, else 0. Raises
    NoScorecard, Incomparable and LogError, and CorruptArtifact for a score that is damaged.
    """
    store, damage = settings.store, Damage()
    models = [_named(each, settings) for each in models]
    cards_by_model = [
        [_cards(store, run, metrics, benchmarks) for run in each.split(",")] for each in models
    ]
    benchmark_names = set(benchmarks) or {
        card.benchmark for runs in cards_by_model for run in runs for card in run
    } - {"validation"}
    names = _names(models, cards_by_model)
    contestants = [
        ComparedModel(each, _common_cards(each, runs, cards_by_model, benchmark_names))
        for each, runs in zip(names, cards_by_model, strict=True)
    ]
    if unknown := sorted(
        benchmark_names - {name for contestant in contestants for name in contestant.cards}
    ):
        raise NoScorecard(
            f"no model has a score on {', '.join(unknown)}: evaluate on it first, or leave it out"
        )
    if len(contestants) == 1:
        print_text(console, "\n".join(can_show(contestants[0], k=k, alpha=alpha)))
        return 0
    tasks: Mapping[str, Collection[str]] = {}
    with damage.collected():
        tasks = _suspects(suspects) if suspects else suspects_of(store)
    rows = compare_models(
        contestants,
        k=k,
        alpha=alpha,
        target_power=power,
        suspects=tasks,
    )
    for line in differences(rows):
        print_text(console, line)
    of_logs = any(card.tool for runs in cards_by_model for run in runs for card in run)
    print_rows(rows, "score" if of_logs and k == 1 else f"pass@{k}", alpha, console)
    print_text(console, "\n".join([*notes(rows, alpha, power), *limits(contestants)]))
    if to:
        write_atomic(to, json.dumps([row.model_dump(mode="json") for row in rows], indent=1) + "\n")
    return damage.exit_code()


def _named(model: str, settings: Settings) -> str:
    """Return the checkpoint that an alias names. Raises NoScorecard."""
    if model not in ALIASES:
        return model
    if (entry := aliases_of(settings.history).get(model)) is None:
        raise NoScorecard(f"there is no {model} yet: `ratchet registry` lists the versions")
    return entry.checkpoint


def _cards(
    store: Store, model: str, metrics: Sequence[str], benchmarks: Sequence[str]
) -> list[Scorecard]:
    """Return the scorecards of a file or folder, else all of a checkpoint in the store, the newest
    last; validation only if it is one of the benchmarks.

    metrics: the scores to compare by; empty for the default ones. Raises NoScorecard.
    """
    if cards := at_path(model, metrics):
        return cards
    names = [
        name
        for name in store.names("scores")
        if "--" in name and ("validation" in benchmarks or not name.endswith("--validation"))
    ]
    cards = [
        by_tests(Scorecard.stored(version), metrics)
        for name in names
        if name.rpartition("--")[0] == model
        for version in store.versions("scores", name)
    ]
    if not cards:
        scored = sorted({name.rpartition("--")[0] for name in names})
        known = f"one of {', '.join(scored)}" if scored else "evaluate a checkpoint first"
        raise NoScorecard(
            f"no scores of {model!r}: give a scorecard, a log, a folder of them, or {known} "
            "(`ratchet evaluate`)"
        )
    return cards


def _names(models: Sequence[str], cards_by_model: Sequence[Sequence[list[Scorecard]]]) -> list[str]:
    """Return short names if they are distinct, else the models unchanged.

    The short name of a log is its model; that of another file has no folder and ending.
    """
    files = [[short(run) if is_path(run) else run for run in each.split(",")] for each in models]
    checkpoints = [
        [cards[0].checkpoint if cards[0].tool else file for file, cards in zip(*each, strict=True)]
        for each in zip(files, cards_by_model, strict=True)
    ]
    for names in ([",".join(runs) for runs in each] for each in (checkpoints, files)):
        if len(set(names)) == len(set(models)):
            return names
    return list(models)


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


def command(
    models: Annotated[
        list[str],
        typer.Argument(
            help=(
                "Scored checkpoints, champion, previous or challenger, scorecards, logs of "
                "Inspect, lm-evaluation-harness, EvalPlus, BigCodeBench, LiveCodeBench, Harbor or "
                "verifiers, or folders of them; several runs of a recipe joined by commas."
            )
        ),
    ],
    *,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(help="Only this benchmark; repeatable. Default: all but validation."),
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="k of pass@k.")] = 1,
    alpha: Annotated[
        float,
        typer.Option(min=0.0001, max=0.5, help="Probability of any false verdict."),
    ] = 0.05,
    power: Annotated[
        float,
        typer.Option(
            min=0.5, max=0.99, help="Power of the printed detectable gains and tasks needed."
        ),
    ] = 0.8,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Score of a log, or test set such as base, to compare by; repeatable, for other "
                "benchmarks."
            )
        ),
    ] = None,
    suspects: Annotated[
        Path | None,
        typer.Option(
            exists=True, help="A suspects.json. Default: that of this home's clean_problems."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option("--out", help="Also write the rows as JSON.")] = None,
    profile: ProfileOption = None,
) -> None:
    """Compare models task by task, with intervals.

    The first model is compared with each other one, with Holm's correction. For a single model, the
    command reports which differences its benchmarks can detect.
    """
    raise typer.Exit(
        compare(
            models,
            benchmark or [],
            k=k,
            alpha=alpha,
            suspects=suspects,
            to=to,
            settings=Settings.read(profile),
            console=screen(),
            metrics=metric or [],
            power=power,
        )
    )


COMMAND = Command("Evaluate", command)
