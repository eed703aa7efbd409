"""Show why completions failed: counts by kind, or single completions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from artifacts.store import Store
from cli.options import (
    ProfileOption,
)
from cli.scorecards import at_path
from evaluation.judging.failure_kinds import Kind, failures, rows
from evaluation.reports.cost import Price
from evaluation.scorecard import Sample, Scorecard
from resources.config.profile import Profile
from resources.home import NotReady
from resources.settings import Settings

GROUP = "Evaluate"


CARD = "scorecard.json"


def show_failures(
    score: str, kind: str, task: str, count: int, settings: Settings, console: Console
) -> int:
    """Print failures. Exits 0, or 1 if none is of that kind or task. Raises NotReady for an unknown
    score.
    """
    card = read_score(score, lambda: settings.store)
    failing = sum(sample.verdict != "AC" for sample in card.samples)
    console.print(
        f"{card.checkpoint} on {card.benchmark}: {failing} of {len(card.samples)} answers "
        f"fail, {100 * card.cut:.1f} % were cut by length."
    )
    if not kind and not task:
        table = Table(box=None, header_style="dim")
        for name in ("kind", "in words", "answers", "which"):
            table.add_column(name, justify="right" if name == "answers" else "left")
        for name, words, answers, which in rows(card):
            table.add_row(name, words, str(answers), escape(which))
        console.print(table)
        return 0
    failing_samples = failures(card, kind, task)
    for sample, why in failing_samples[:count]:
        _show(sample, why, card.prompts.get(sample.task_id, ""), console)
    console.print(
        f"{min(count, len(failing_samples))} of {len(failing_samples)} shown"
        if failing_samples
        else "none of them is of that kind and task",
        style="dim",
    )
    return 0 if failing_samples else 1


def price_of(profile: Profile) -> Price:
    return Price(profile.evaluation.price_per_million_tokens, profile.price_per_hour)


def read_score(score: str, store: Callable[[], Store]) -> Scorecard:
    """Of a path or a name in the store. Raises NoScorecard, and NotReady for what is not there."""
    if scorecards := at_path(score):
        if len(scorecards) > 1:
            raise NotReady(
                f"{score} holds the scores of several benchmarks, "
                f"{', '.join(card.benchmark for card in scorecards)}: give one of its files"
            )
        return scorecards[0]
    if (artifact := store().current("scores", score)) is None:
        raise NotReady(
            f"no score {score!r}: give the path of a scorecard, or one of: "
            f"{_names(store()) or 'none yet'}"
        )
    if not (artifact.path / CARD).is_file():
        raise NotReady(
            f"{score} holds the scores of several benchmarks: give one of {_names(store())}"
        )
    return Scorecard.stored(artifact)


def _names(store: Store) -> str:
    return ", ".join(name for name in store.names("scores") if "--" in name)


def _show(sample: Sample, why: Kind, prompt: str, console: Console) -> None:
    console.rule(
        escape(f"{sample.task_id}, answer {sample.sample}: {why}{_passes(sample)}"), align="left"
    )
    for title, text in (
        ("Prompt", prompt or "(not kept with this score)"),
        ("Answer", sample.completion),
        ("First failing test", _test(sample)),
    ):
        console.print(
            f"[dim]{title}[/]\n{escape(text.rstrip())}\n", highlight=False, soft_wrap=True
        )


def _passes(sample: Sample) -> str:
    if sample.sets:
        return (
            (
                ", passes "
                f"{', '.join(name for name, passed in sample.sets.items() if passed) or 'no set of tests'}"  # noqa: E501
            )
            if len(sample.sets) > 1
            else ""
        )
    return f", {sample.passed} of {sample.total} tests pass"


def _test(sample: Sample) -> str:
    hidden = f"test {sample.failed_test}, which is hidden" if sample.failed_test else ""
    text = (
        sample.first_failed
        or hidden
        or ("" if sample.detail else "none: the program did not get that far")
    )
    return "\n".join(line for line in (text, sample.detail) if line)


def command(
    score: Annotated[
        str,
        typer.Argument(
            help="Name of a score, such as chain-0001--heldout, or the path of a scorecard."
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            help=(
                "WA, RE, TLE, MLE, OLE, CE, extraction or cut; also with what it is of: 'RE "
                "KeyError'."
            )
        ),
    ] = "",
    task: Annotated[str, typer.Option(help="A task's id, or its end after a slash.")] = "",
    count: Annotated[int, typer.Option(min=1, help="How many answers are shown.")] = 5,
    profile: ProfileOption = None,
) -> None:
    """Show why completions failed: counts by kind, or single completions.

    With --kind or --task: prompts, completions and the first failing visible tests.
    """
    raise typer.Exit(show_failures(score, kind, task, count, Settings.read(profile), Console()))
