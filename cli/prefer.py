"""Open a page on which people compare completions blind; report who is preferred."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from artifacts.hashing import hash_data
from cli.options import ProfileOption
from evaluation.preference.contestants import Contestant, of_card, read_contestant, read_statements
from evaluation.promotion.gate import p_text
from evaluation.scorecard import Scorecard
from evaluation.statistics.bradley_terry import (
    Agreement,
    Duel,
    Met,
    Standing,
    agreement,
    favoured_left,
    standings,
)
from evaluation.statistics.hypothesis_tests import Interval
from problems.columns import ProblemError
from resources.home import NotReady
from resources.settings import Settings

GROUP = "Evaluate"


if TYPE_CHECKING:
    from serving.preference.round import RoundInfo


PORTS = 20  # tried, from the one that was asked for


@dataclass(frozen=True)
class PreferenceOptions:
    """A round as it was asked for."""

    contestants: tuple[str, ...]
    benchmark: str
    tasks: Path | None
    pairs: int
    seed: int
    question: str
    to: Path | None


def prefer(
    options: PreferenceOptions,
    host: str,
    port: int,
    result: bool,
    settings: Settings,
    console: Console,
) -> int:
    """Serve the page until it is stopped, then print the choices. Raises ProblemError, NotReady,
    FileNotFoundError, RoundInUse.
    """
    from serving.preference.app import new_token, serve
    from serving.preference.round import Round, read_matches

    folder = _round(options, settings)
    if not result:
        opened = Round(folder)
        with _door(host, port) as door:
            token, (address, number) = new_token(), door.getsockname()[:2]
            console.print(
                f"{len(opened.pairs)} pairs. Open http://{address}:{number}/?token={token}",
                soft_wrap=True,
                highlight=False,
            )
            console.print(
                (
                    "Several judges may use it, each with a name of their own; Ctrl-C ends it, "
                    "the same command goes on."
                ),
                soft_wrap=True,
            )
            try:
                serve(opened, token, door)
            except KeyboardInterrupt:
                pass
            finally:
                opened.close()
    show(folder, read_matches(folder), console)
    return 0


def _round(options: PreferenceOptions, settings: Settings) -> Path:
    """The folder of the round, begun unless it is there."""
    from evaluation.preference.pairs import make_pairs
    from serving.preference.round import QUESTION, RoundInfo, begin

    if len(options.contestants) < 2:
        raise ProblemError("one contestant has nobody to be compared with", "give two or more")
    contestants, statements = _contestants(options, settings)
    pairs, same = make_pairs(contestants, statements, options.seed, options.pairs)
    question = options.question or QUESTION
    names = dict(zip((each.name for each in contestants), options.contestants, strict=True))
    about = RoundInfo(seed=options.seed, question=question, contestants=names, same=same)
    known = hash_data(
        {"pairs": [pair.model_dump() for pair in pairs], "seed": options.seed, "question": question}
    )
    folder = (
        (options.to or settings.home.path / "preferences" / f"round-{known[:10]}")
        .expanduser()
        .absolute()
    )
    begin(folder, about, pairs)
    return folder


def _contestants(
    options: PreferenceOptions, settings: Settings
) -> tuple[list[Contestant], dict[str, str]]:
    """Everybody with their answers, and what was asked."""
    named = [name for name in options.contestants if not Path(name).exists()]
    cards = _common(named, options.benchmark, settings) if named else {}
    contestants = [
        of_card(cards[name], name) if name in cards else read_contestant(Path(name))
        for name in options.contestants
    ]
    statements: dict[str, str] = {}
    for each in contestants:
        statements |= each.statements
    return contestants, statements | (read_statements(options.tasks) if options.tasks else {})


def _common(names: Sequence[str], benchmark: str, settings: Settings) -> dict[str, Scorecard]:
    """Return each contestant's scorecard on the same version of one benchmark. Raises
    FileNotFoundError, which lists the scores.
    """
    by_test: dict[tuple[str, str], dict[str, Scorecard]] = {}
    for card in _cards(settings):
        if card.checkpoint in names and benchmark in ("", card.benchmark):
            by_test.setdefault((card.benchmark, card.benchmark_version), {})[card.checkpoint] = card
    whole = [
        (name != "heldout", name, cards)
        for (name, _), cards in by_test.items()
        if len(cards) == len(set(names))
    ]
    if not whole:
        scored = sorted({card.checkpoint for card in _cards(settings)})
        where = f" on one version of {benchmark}" if benchmark else " on the same tasks"
        raise FileNotFoundError(
            f"{' and '.join(names)}: no file, and no scorecards of all{where}; scored here "
            f"are: {', '.join(scored) or 'none'}"
        )
    return min(whole, key=lambda row: row[:2])[2]


def _cards(settings: Settings) -> Iterator[Scorecard]:
    store = settings.store
    for name in store.names("scores"):
        if artifact := store.current("scores", name):
            for path in sorted(artifact.path.glob("*.json")):
                if path.name == "scorecard.json" or "--" in path.name:
                    yield Scorecard.read(path)


def _door(host: str, port: int) -> socket.socket:
    """A listening socket on the port, or on the next free one. Raises NotReady."""
    for number in range(port, min(port + PORTS, 65536)):
        door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, number))
            door.listen()
        except OSError as error:
            door.close()
            reason = error.strerror
        else:
            return door
    raise NotReady(
        f"no port from {port} on at {host} can be had ({reason}): give another with --port"
    )


def show(folder: Path, met: Sequence[Met], console: Console) -> None:
    """Prints what was chosen, and writes it beside the choices."""
    from artifacts.atomic import write_atomic
    from assets.tables import markdown
    from serving.preference.round import read_round

    about, pairs = read_round(folder)
    if not met:
        return console.print(
            f"Nobody has chosen yet. The round: {folder}", soft_wrap=True, highlight=False
        )
    ranked, duels = standings(met)
    agreed = agreement(met)
    lines = told(met, ranked, duels, agreed, about, len(pairs))
    table = Table(
        "contestant", "chance to be chosen over an average one", box=None, header_style="dim"
    )
    for each in ranked:
        table.add_row(each.name, share(each.chance, each.interval))
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    rows = markdown(
        ("contestant", "chance to be chosen over an average one"),
        [(each.name, share(each.chance, each.interval)) for each in ranked],
    )
    write_atomic(
        folder / "standing.md",
        "\n".join([f"# {folder.name}", "", rows, "", *(f"- {line}" for line in lines), ""]),
    )
    console.print(
        f"Choices, as a reward reads them (reward.preferences): {folder / 'choices.jsonl'}",
        soft_wrap=True,
        highlight=False,
    )


def told(
    met: Sequence[Met],
    ranked: Sequence[Standing],
    duels: Sequence[Duel],
    agreed: Agreement,
    about: RoundInfo,
    pairs: int,
) -> list[str]:
    """What the choices say and what they do not, in sentences."""
    judges, seen = sorted({each.judge for each in met}), len({each.pair for each in met})
    lines = [
        (
            f"{len(met)} choices by {len(judges)} judge{'s' if len(judges) > 1 else ''} "
            f"({', '.join(judges)}) in {seen} of {pairs} pairs."
        )
    ]
    if about.same:
        lines.append(f"Not asked: {about.same} times two contestants wrote the same text.")
    for duel in duels:
        verdict = (
            f"{duel.first} is preferred"
            if duel.p_value <= 0.05 and duel.chance > 0.5
            else "which is better is not shown"
        )
        shown = (
            f"{share(duel.chance, duel.interval)}; {duel.won} won, {duel.lost} lost, {duel.tied} "
            "tied"
        )
        lines.append(
            f"{duel.first} over {duel.second}: {shown}: {verdict} ({p_text(duel.p_value)}, "
            "sign test over tasks)."
        )
    if agreed.alpha is None:
        why = (
            "no pair was judged by two judges"
            if not agreed.pairs
            else "all said one thing everywhere, which alpha cannot tell from chance"
        )
        lines.append(f"Agreement of the judges: not measured, {why}.")
    else:
        bounds = (
            f" ({agreed.interval.low:.2f} to {agreed.interval.high:.2f})" if agreed.interval else ""
        )
        alike = f"two judges chose alike {100 * (agreed.same or 0):.0f} % of the time"
        lines.append(
            f"Agreement of the judges: Krippendorff's alpha {agreed.alpha:.2f}{bounds}, "
            f"{alike}, in {agreed.pairs} pairs that several judged."
        )
    if left := favoured_left(met):
        lines.append(
            f"The left answer was chosen in {share(left[0], left[1])} of decided choices; "
            f"sides were drawn by seed {about.seed}."
        )
    return lines


def share(value: float, interval: Interval | None) -> str:
    return f"{100 * value:.0f} %" + (
        f" ({100 * interval.low:.0f} to {100 * interval.high:.0f})"
        if interval
        else " (no interval from one task)"
    )


def command(
    contestants: Annotated[
        list[str],
        typer.Argument(
            help=(
                "Two or more: checkpoints with scorecards here, scorecards, or files of "
                "completions."
            )
        ),
    ],
    benchmark: Annotated[
        str,
        typer.Option(
            help=(
                "Whose answers, for checkpoints by name; without it the first that all were "
                "scored on."
            )
        ),
    ] = "",
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines (task_id, prompt) or a parquet in our schema: what the tasks ask."
        ),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=0, help="At most so many pairs, drawn by the seed; 0: all.")
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the draw, of each judge's order and of the sides.")
    ] = 0,
    question: Annotated[str, typer.Option(help="What the judges are asked.")] = "",
    host: Annotated[
        str,
        typer.Option(
            help=(
                "Address to listen on; with another than 127.0.0.1 others on the network can "
                "judge (plain HTTP)."
            )
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The next free one is taken.")] = 8088,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="Folder for the choices; without it one under the home, found again."
        ),
    ] = None,
    result: Annotated[
        bool, typer.Option("--result", help="Say what has been chosen so far, and open no page.")
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Open a page on which people compare completions blind; report who is preferred.

    The choices can train a reward (docs/preference.md).
    """

    options = PreferenceOptions(tuple(contestants), benchmark, tasks, pairs, seed, question, to)
    raise typer.Exit(prefer(options, host, port, result, Settings.read(profile), Console()))
