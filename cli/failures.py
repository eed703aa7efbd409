"""What stands behind a score: failing answers by kind, one by one, and how the passing programs read over versions. Knows no Dagster.

In: score artifacts of the home, or a scorecard's file. Out: text. Hidden tests stay hidden: a test is shown where the statement shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from artifacts.store import Store
from cli.scorecards import at_path, read
from evaluation.judging.failure_kinds import Kind, failures, rows
from evaluation.judging.quality import HEAD, trend
from evaluation.reports.cost import Price, Spent
from evaluation.scorecard import Sample, Scorecard
from resources.config.profile import Profile, load_profile
from resources.home import Home, NotReady

CARD = "scorecard.json"


def show_failures(
    score: str, kind: str, task: str, count: int, profile: str | None, console: Console
) -> int:
    """Exits 0; 1 where nothing that fails is of that kind or task. Raises NotReady for a score that is not there."""
    card = _read(score, lambda: _store(load_profile(profile)))
    failing = sum(sample.verdict != "AC" for sample in card.samples)
    console.print(
        f"{card.checkpoint} on {card.benchmark}: {failing} of {len(card.samples)} answers fail, {100 * card.cut:.1f} % were cut by length."
    )
    if not kind and not task:
        table = Table(box=None, header_style="dim")
        for name in ("kind", "in words", "answers", "which"):
            table.add_column(name, justify="right" if name == "answers" else "left")
        for name, words, answers, which in rows(card):
            table.add_row(name, words, str(answers), escape(which))
        console.print(table)
        return 0
    found = failures(card, kind, task)
    for sample, why in found[:count]:
        _show(sample, why, card.prompts.get(sample.task_id, ""), console)
    console.print(
        f"{min(count, len(found))} of {len(found)} shown"
        if found
        else "none of them is of that kind and task",
        style="dim",
    )
    return 0 if found else 1


def show_quality(
    scores: Sequence[str], benchmark: str, profile: str | None, console: Console
) -> int:
    """The scores named, in that order; without any all of the home by when they were made, the oldest first. Raises NotReady."""
    loaded = load_profile(profile)
    store, price = _store(loaded), price_of(loaded)
    made = [
        artifact
        for name in store.names("scores")
        if "--" in name and (artifact := store.current("scores", name))
    ]
    found = [_read(score, lambda: store) for score in scores] or [
        Scorecard.read(each.path / CARD)
        for each in sorted(made, key=lambda each: each.manifest.created_at)
    ]
    cards = [card for card in found if benchmark in ("", card.benchmark)]
    if not cards:
        raise NotReady("there is no score yet: `ratchet evaluate CHECKPOINT` makes some")
    table = Table(box=None, header_style="dim")
    for name in (*HEAD, "cut", "a solved problem took"):
        table.add_column(name)
    for card, row in zip(cards, trend(cards), strict=True):
        table.add_row(*row, f"{100 * card.cut:.1f} %", Spent.of(card).a_problem(price))
    console.print(table)
    return 0


def price_of(profile: Profile) -> Price:
    return Price(profile.evaluation.price_per_million_tokens, profile.price_per_hour)


def _store(profile: Profile) -> Store:
    return Home.from_environment().store(profile.storage.root)


def _read(score: str, store: Callable[[], Store]) -> Scorecard:
    """Of a path or a name in the store. Raises NoScorecard, and NotReady for what is not there."""
    if found := at_path(score):
        if len(found) > 1:
            raise NotReady(
                f"{score} holds the scores of several benchmarks, {', '.join(card.benchmark for card in found)}: give one of its files"
            )
        return found[0]
    if (made := store().current("scores", score)) is None:
        raise NotReady(
            f"no score {score!r}: give the path of a scorecard, or one of: {_names(store()) or 'none yet'}"
        )
    if not (made.path / CARD).is_file():
        raise NotReady(
            f"{score} holds the scores of several benchmarks: give one of {_names(store())}"
        )
    return read(made.path / CARD)


def _names(store: Store) -> str:
    return ", ".join(name for name in store.names("scores") if "--" in name)


def _show(sample: Sample, why: Kind, asked: str, console: Console) -> None:
    console.rule(
        escape(f"{sample.task_id}, answer {sample.sample}: {why}{_passes(sample)}"), align="left"
    )
    for title, text in (
        ("Prompt", asked or "(not kept with this score)"),
        ("Answer", sample.answer),
        ("First failing test", _test(sample)),
    ):
        console.print(
            f"[dim]{title}[/]\n{escape(text.rstrip())}\n", highlight=False, soft_wrap=True
        )


def _passes(sample: Sample) -> str:
    if sample.sets:
        return (
            f", passes {', '.join(name for name, passed in sample.sets.items() if passed) or 'no set of tests'}"
            if len(sample.sets) > 1
            else ""
        )
    return f", {sample.passed} of {sample.total} tests pass"


def _test(sample: Sample) -> str:
    hidden = f"test {sample.failed_test}, which is hidden" if sample.failed_test else ""
    told = (
        sample.first_failed
        or hidden
        or ("" if sample.detail else "none: the program did not get that far")
    )
    return "\n".join(line for line in (told, sample.detail) if line)
