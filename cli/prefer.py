"""Open a page where people compare completions blind, and report which are preferred."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from artifacts.hashing import hash_data
from artifacts.integrity import reading
from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.display.preference_result import print_result
from cli.display.screen import screen
from cli.lookup.damage import Damage
from evaluation.preference.contestants import Contestant, of_card, read_contestant, read_statements
from evaluation.scorecard import Scorecard
from pipelines.watch.text import print_text
from problems.columns import ProblemError
from resources.home import NotReady
from resources.settings import Settings

if TYPE_CHECKING:
    from evaluation.preference.pairs import CompletionPair
    from serving.preference.round import RoundInfo

PORTS = 20  # number of ports that are tried


@dataclass(frozen=True)
class PreferenceOptions:
    """The options that define a round of comparisons."""

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
    """Serve the page until it is stopped, then print the choices.

    result: only print the choices of a round that was started before; nothing is written but its
    `standing.md`. Raises ProblemError, NotReady, FileNotFoundError, RoundInUse.
    """
    from serving.preference.app import new_token, serve
    from serving.preference.round import Round, begin, check, read_matches

    folder, info, pairs = round_of(options, settings)
    if result:
        check(folder, info, pairs)
    else:
        begin(folder, info, pairs)
        current = Round(folder)
        with _listening_socket(host, port) as listener:
            token, (address, number) = new_token(), listener.getsockname()[:2]
            print_text(
                console,
                f"{len(current.pairs)} pairs. Open http://{address}:{number}/?token={token}",
            )
            console.print(
                "Several judges can use the page, each under their own name. Ctrl-C stops it; the "
                "same command resumes the round.",
                soft_wrap=True,
            )
            try:
                serve(current, token, listener)
            except KeyboardInterrupt:
                pass
            finally:
                current.close()
    print_result(folder, read_matches(folder), console)
    return 0


def round_of(
    options: PreferenceOptions, settings: Settings
) -> tuple[Path, RoundInfo, Sequence[CompletionPair]]:
    """Return the folder of the round, its description and its pairs."""
    from evaluation.preference.pairs import make_pairs
    from serving.preference.round import QUESTION, RoundInfo

    if len(options.contestants) < 2:
        raise ProblemError(f"only one contestant, {options.contestants[0]}", "give two or more")
    contestants, statements = _contestants(options, settings)
    pairs, same = make_pairs(contestants, statements, options.seed, options.pairs)
    question = options.question or QUESTION
    names = dict(zip((each.name for each in contestants), options.contestants, strict=True))
    info = RoundInfo(seed=options.seed, question=question, contestants=names, same=same)
    round_hash = hash_data(
        {"pairs": [pair.model_dump() for pair in pairs], "seed": options.seed, "question": question}
    )
    folder = (
        (options.to or settings.home.path / "preferences" / f"round-{round_hash[:10]}")
        .expanduser()
        .absolute()
    )
    return folder, info, pairs


def _contestants(
    options: PreferenceOptions, settings: Settings
) -> tuple[list[Contestant], dict[str, str]]:
    """Return the contestants with their completions, and the statements by task."""
    checkpoints = [name for name in options.contestants if not Path(name).exists()]
    cards = _common_cards(checkpoints, options.benchmark, settings) if checkpoints else {}
    contestants = [
        of_card(cards[name], name) if name in cards else read_contestant(Path(name))
        for name in options.contestants
    ]
    statements: dict[str, str] = {}
    for each in contestants:
        statements |= each.statements
    return contestants, statements | (read_statements(options.tasks) if options.tasks else {})


def _common_cards(names: Sequence[str], benchmark: str, settings: Settings) -> dict[str, Scorecard]:
    """Return a scorecard of each checkpoint on the same version of one benchmark.

    Raises FileNotFoundError, which lists the scored checkpoints.
    """
    by_benchmark: dict[tuple[str, str], dict[str, Scorecard]] = {}
    cards_of_home = _cards(settings)
    for card in cards_of_home:
        if card.checkpoint in names and benchmark in ("", card.benchmark):
            version = (card.benchmark, card.benchmark_version)
            by_benchmark.setdefault(version, {})[card.checkpoint] = card
    shared = [
        (name != "heldout", name, cards)
        for (name, _), cards in by_benchmark.items()
        if len(cards) == len(set(names))
    ]
    if not shared:
        scored = sorted({card.checkpoint for card in cards_of_home})
        tasks = f"one version of {benchmark}" if benchmark else "the same tasks"
        raise FileNotFoundError(
            f"{' and '.join(names)}: not files, and not all scored on {tasks}; scored checkpoints "
            f"in this home: {', '.join(scored) or 'none'}"
        )
    return min(shared, key=lambda row: row[:2])[2]


def _cards(settings: Settings) -> list[Scorecard]:
    """Return every current scorecard of the home; name the damaged ones on stderr."""
    store, damage, cards = settings.store, Damage(), []
    for name in store.names("scores"):
        with damage.collected():
            if artifact := store.current("scores", name):
                for path in sorted(artifact.path.glob("*.json")):
                    if path.name == "scorecard.json" or "--" in path.name:
                        with reading(path):
                            cards.append(Scorecard.read(path))
    damage.report()
    return cards


def _listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the port, or on the next free one. Raises NotReady."""
    for number in range(port, min(port + PORTS, 65536)):
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen()
        except OSError as error:
            listener.close()
            reason = error.strerror
        else:
            return listener
    raise NotReady(f"no free port from {port} on at {host} ({reason}): give another with --port")


def command(
    contestants: Annotated[
        list[str],
        typer.Argument(
            help=("Two or more: names of scored checkpoints, scorecards, or files of completions.")
        ),
    ],
    *,
    benchmark: Annotated[
        str,
        typer.Option(
            help=(
                "Benchmark of the completions, for checkpoints by name. Default: the first that "
                "all were scored on."
            )
        ),
    ] = "",
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="Statements of the tasks: JSON lines (task_id, prompt), or a parquet of problems."
        ),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=0, help="Maximum number of pairs, sampled by the seed; 0: all.")
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the sample, of each judge's order and of the sides.")
    ] = 0,
    question: Annotated[str, typer.Option(help="The question to the judges.")] = "",
    host: Annotated[
        str,
        typer.Option(
            help=(
                "Address to listen on. With another than 127.0.0.1, people on the network can "
                "judge too, over plain HTTP."
            )
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port, or the next free one.")] = 8088,
    to: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder for the choices. Default: one in the home for each round."
        ),
    ] = None,
    result: Annotated[
        bool, typer.Option("--result", help="Print the choices so far, without opening a page.")
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Open a page where people compare completions blind, and report which are preferred.

    The choices can train a reward (docs/how-to/preference.md).
    """

    options = PreferenceOptions(
        contestants=tuple(contestants),
        benchmark=benchmark,
        tasks=tasks,
        pairs=pairs,
        seed=seed,
        question=question,
        to=to,
    )
    raise typer.Exit(prefer(options, host, port, result, Settings.read(profile), screen()))


COMMAND = Command("Evaluate", command)
