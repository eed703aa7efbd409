"""Show style, complexity, length and cost of the programs that pass, score by score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from artifacts.store import Store
from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display.screen import print_json, screen
from cli.display.wide_table import print_wide
from cli.failures import price_of, read_score
from cli.lookup.damage import Damage
from evaluation.judging.quality import HEAD, measured, trend
from evaluation.reports.cost import Usage
from evaluation.scorecard import Scorecard
from resources.home import NotReady
from resources.settings import Settings


def show_quality(
    scores: Sequence[str],
    benchmark: str,
    settings: Settings,
    console: Console,
    *,
    as_json: bool = False,
) -> int:
    """Print these scores in this order; without names all of the home, the oldest first. Return 2
    if one of the home is damaged, else 0.

    Raises NotReady, and CorruptArtifact for a named score that is damaged.
    """
    store, price, damage = settings.store, price_of(settings.profile), Damage()
    scorecards = [read_score(score, lambda: store) for score in scores] or all_scores(store, damage)
    cards = [card for card in scorecards if benchmark in ("", card.benchmark)]
    if not cards and (code := damage.exit_code()):
        return code
    if not cards:
        known = sorted({card.benchmark for card in scorecards})
        raise NotReady(
            f"no score on {benchmark!r}: there are scores on {', '.join(known)}"
            if known
            else "no score yet: `ratchet evaluate CHECKPOINT` makes the first"
        )
    # Logs of other tools do not hold these figures.
    cards = [
        card.model_copy(update={"measured": measured(card.samples, {})}) if card.tool else card
        for card in cards
    ]
    rows = [
        dict(zip(HEAD, row, strict=True))
        | {
            "truncated": f"{100 * card.cut:.1f} %",
            "cost of a solved problem": Usage.of(card).per_solved_problem(price),
        }
        for card, row in zip(cards, trend(cards), strict=True)
    ]
    if as_json:
        print_json(rows)
    else:
        print_wide(rows, console, box=None)
    return damage.exit_code()


def all_scores(store: Store, damage: Damage) -> list[Scorecard]:
    """Return the current scorecards of a home that are whole, the oldest first."""
    cards = []
    for name in [name for name in store.names("scores") if "--" in name]:
        with damage.collected():
            if artifact := store.current("scores", name):
                cards.append((artifact.manifest.created_at, Scorecard.stored(artifact)))
    return [card for _, card in sorted(cards, key=lambda card: card[0])]


def command(
    scores: Annotated[
        list[str] | None,
        typer.Argument(help="Scores by name or path. Default: all of this home."),
    ] = None,
    benchmark: Annotated[str, typer.Option(help="Only this benchmark.")] = "",
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show style, complexity, length and cost of the programs that pass, score by score."""
    settings = Settings.read(profile)
    raise typer.Exit(show_quality(scores or [], benchmark, settings, screen(), as_json=as_json))


COMMAND = Command("Evaluate", command)
