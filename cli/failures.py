"""Show why completions failed: counts by kind, or single completions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from artifacts.store import Store
from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display.screen import print_heading, print_json, screen
from cli.lookup.scorecards import at_path
from evaluation.judging.failure_kinds import Kind, failures, rows
from evaluation.reports.cost import Price
from evaluation.scorecard import Scorecard, ScoredSample
from pipelines.watch.text import print_text
from resources.config.profile import Profile
from resources.home import NotReady
from resources.settings import Settings

CARD = "scorecard.json"


def show_failures(
    score: str,
    kind: str,
    task: str,
    count: int,
    settings: Settings,
    console: Console,
    *,
    as_json: bool = False,
) -> int:
    """Print failures. as_json: the completions. Return 0, or 1 if none has that kind and task.

    Raises NotReady for an unknown score.
    """
    card = read_score(score, lambda: settings.store)
    if as_json:
        found = failures(card, kind, task)[:count]
        print_json([sample.model_dump() | {"kind": str(why)} for sample, why in found])
        return 0 if found else 1
    failing = sum(sample.verdict != "AC" for sample in card.samples)
    console.print(
        f"{card.checkpoint} on {card.benchmark}: {failing} of {len(card.samples)} completions "
        f"fail, {100 * card.cut:.1f} % are truncated."
    )
    if not kind and not task:
        table = Table(box=None, header_style="dim")
        for name in ("kind", "meaning", "completions", "details"):
            table.add_column(name, justify="right" if name == "completions" else "left")
        for name, meaning, completions, details in rows(card):
            table.add_row(name, meaning, str(completions), escape(details))
        console.print(table)
        return 0
    failing_samples = failures(card, kind, task)
    for sample, why in failing_samples[:count]:
        _show(sample, why, card.prompts.get(sample.task_id, ""), console)
    console.print(
        f"{min(count, len(failing_samples))} of {len(failing_samples)} shown"
        if failing_samples
        else "no failure has that kind and task",
        style="dim",
    )
    return 0 if failing_samples else 1


def price_of(profile: Profile) -> Price:
    """Return the prices of a token and an hour, by which costs are shown."""
    return Price(profile.evaluation.price_per_million_tokens, profile.price_per_hour)


def read_score(score: str, store: Callable[[], Store]) -> Scorecard:
    """Return the scorecard of a path or a name in the store.

    Raises NoScorecard, and NotReady for an unknown name.
    """
    if scorecards := at_path(score):
        if len(scorecards) > 1:
            raise NotReady(
                f"{score} holds scores on several benchmarks, "
                f"{', '.join(card.benchmark for card in scorecards)}: give one of its files"
            )
        return scorecards[0]
    if (artifact := store().current("scores", score)) is None:
        raise NotReady(
            f"no score {score!r}: give the path of a scorecard, or one of: "
            f"{_names(store()) or 'none yet'}"
        )
    if not (artifact.path / CARD).is_file():
        raise NotReady(f"{score} holds scores on several benchmarks: give one of {_names(store())}")
    return Scorecard.stored(artifact)


def _names(store: Store) -> str:
    return ", ".join(name for name in store.names("scores") if "--" in name)


def _show(sample: ScoredSample, why: Kind, prompt: str, console: Console) -> None:
    title = f"{sample.task_id}, completion {sample.sample}: {why}{_passes(sample)}"
    print_heading(console, escape(title))
    for title, text in (
        ("Prompt", prompt or "(not stored with this score)"),
        ("Completion", sample.completion),
        ("First failing test", _test(sample)),
    ):
        print_text(console, f"[dim]{title}[/]\n{escape(text.rstrip())}\n")


def _passes(sample: ScoredSample) -> str:
    if len(sample.sets) > 1:
        passed = ", ".join(name for name, passes in sample.sets.items() if passes)
        return f", passes {passed or 'no test set'}"
    if sample.sets:
        return ""
    return f", {sample.passed} of {sample.total} tests pass"


def _test(sample: ScoredSample) -> str:
    hidden = f"test {sample.failed_test} (hidden)" if sample.failed_test else ""
    text = (
        sample.first_failed
        or hidden
        or ("" if sample.detail else "none: the program failed before its tests")
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
            help=("WA, RE, TLE, MLE, OLE, CE, extraction or cut; with an exception: 'RE KeyError'.")
        ),
    ] = "",
    task: Annotated[str, typer.Option(help="A task's id, or the end of it after a slash.")] = "",
    count: Annotated[int, typer.Option(min=1, help="Maximum number of completions.")] = 5,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show why completions failed: counts by kind, or single completions.

    With --kind or --task: prompts, completions and the first failing visible tests.
    """
    settings = Settings.read(profile)
    raise typer.Exit(show_failures(score, kind, task, count, settings, screen(), as_json=as_json))


COMMAND = Command("Evaluate", command)
