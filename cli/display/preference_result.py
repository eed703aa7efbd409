"""Print the result of a round of blind comparisons: who is preferred, and how much judges agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from evaluation.promotion.comparison import p_text
from evaluation.statistics.bradley_terry import (
    Agreement,
    Duel,
    PairChoice,
    agreement,
    left_share,
    standings,
)
from evaluation.statistics.hypothesis_tests import Interval
from pipelines.watch.text import print_text
from rewards.choices import read_choices
from rewards.preference_head import fit_head

if TYPE_CHECKING:
    from serving.preference.round import RoundInfo


def print_result(folder: Path, matches: Sequence[PairChoice], console: Console) -> None:
    """Print the result of the round, and write it to `standing.md` beside the choices."""
    from artifacts.atomic import write_atomic
    from assets.markdown import markdown
    from serving.preference.round import read_round

    info, pairs = read_round(folder)
    if not matches:
        return print_text(console, f"No choices yet. Round: {folder}")
    ranked, duels = standings(matches)
    lines = summary(matches, duels, info, len(pairs))
    heading = ("contestant", "chance to be preferred to an average one")
    rows = [(each.name, share(each.chance, each.interval)) for each in ranked]
    table = Table(*heading, box=None, header_style="dim")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for line in lines:
        print_text(console, line)
    details = "\n".join(f"- {line}" for line in lines)
    text = f"# {folder.name}\n\n{markdown(heading, rows)}\n\n{details}\n"
    write_atomic(folder / "standing.md", text)
    head = fit_head(read_choices(folder / "choices.jsonl"))
    if head:
        print_text(console, f"{head}.")
    print_text(console, f"Choices, in the format of reward.preferences: {folder / 'choices.jsonl'}")


def summary(
    matches: Sequence[PairChoice], duels: Sequence[Duel], info: RoundInfo, pairs: int
) -> list[str]:
    """Return the result in sentences: the counts, each comparison, the judges' agreement, and
    whether a side was favoured. pairs: number of pairs in the round.
    """
    judges = sorted({each.judge for each in matches})
    compared_pairs = len({each.pair for each in matches})
    lines = [
        f"{len(matches)} choices by {len(judges)} judge{'s' if len(judges) > 1 else ''} "
        f"({', '.join(judges)}) in {compared_pairs} of {pairs} pairs."
    ]
    if info.same:
        lines.append(f"Not compared: {info.same} pairs of equal texts.")
    for duel in duels:
        preferred = duel.p_value <= 0.05 and duel.chance > 0.5
        lines.append(
            f"{duel.first} over {duel.second}: {share(duel.chance, duel.interval)}; {duel.won} "
            f"won, {duel.lost} lost, {duel.tied} tied: "
            f"{f'{duel.first} is preferred' if preferred else 'no preference shown'} "
            f"({p_text(duel.p_value)}, sign test over tasks)."
        )
    lines.append(f"Agreement of the judges: {agreement_text(agreement(matches))}.")
    if left := left_share(matches):
        lines.append(
            f"The left completion was chosen in {share(left[0], left[1])} of decided choices; "
            f"seed {info.seed} decided the sides."
        )
    return lines


def agreement_text(agreed: Agreement) -> str:
    """Return Krippendorff's alpha with its interval in words, or why it is undefined."""
    if not agreed.pairs:
        return "unknown, no pair has two judges"
    if agreed.alpha is None:
        return "undefined, all choices are the same"
    interval = (
        f" ({agreed.interval.low:.2f} to {agreed.interval.high:.2f})" if agreed.interval else ""
    )
    return (
        f"Krippendorff's alpha {agreed.alpha:.2f}{interval}; two judges agreed in "
        f"{100 * (agreed.same or 0):.0f} % of cases, in {agreed.pairs} pairs with several judges"
    )


def share(value: float, interval: Interval | None) -> str:
    """Return a share with its interval in per cent."""
    return f"{100 * value:.0f} %" + (
        f" ({100 * interval.low:.0f} to {100 * interval.high:.0f})"
        if interval
        else " (no interval from one task)"
    )
