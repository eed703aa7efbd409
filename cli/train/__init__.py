"""Train the next challenger and decide on its promotion; like `demo`, with plain output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    SetOption,
    UnverifiedOption,
    YesOption,
)
from pipelines.watch.text import print_text
from resources.preflight import check_reward
from resources.settings import Settings
from rewards.choices import read_choices
from rewards.config import RewardConfig
from rewards.preference_head import fit_head
from verl_jobs.config.overrides import overrides


def show_algorithm(settings: Settings, console: Console) -> int:
    """Print the algorithm, its paper and limits, the reward, and the overrides that verl gets.

    Raises RewardFileError and ProblemError for a reward that cannot train.
    """
    check_reward(settings.home, settings.profile)
    training = settings.profile.training
    method = training.method
    print_text(console, f"[bold]{escape(method.title)}[/] ({escape(method.paper)})")
    print_text(console, escape(method.rule))
    for limit in filter(None, (method.unrun, training.scale.unrun(training.engine))):
        print_text(console, f"[yellow]{escape(limit)}[/]")
    for line in reward_lines(settings.profile.reward):
        print_text(console, line)
    if (agents := training.agents).on:
        print_text(
            console,
            f"[bold]Conversations[/] of at most {training.response_tokens} tokens; programs: at "
            f"most {agents.turns}; calls of the Python tool: at most {agents.tool_calls}",
        )
    paths = {name: Path(f"<{name}>") for name in ("model", "train", "validation", "folder")}
    lines = overrides(training, seed=0, loggers=[], name="<run>", **paths)
    console.print(
        "\n[bold]Overrides for verl.trainer.main_ppo[/] (the pipeline run sets the seed)",
        soft_wrap=True,
    )
    for line in sorted(lines, key=lambda line: line not in method.overrides):
        print_text(console, f"  {escape(line)}", style="bold" if line in method.overrides else "")
    return 0


def reward_lines(config: RewardConfig) -> list[str]:
    """Return the reward in lines: the weights, and those of each tag."""
    if not config.measured:
        return [f"[bold]Reward[/] {escape(config.file) or config.kind}"]
    lines = [
        f"[bold]Reward[/]{f' of {escape(tag)}' if tag else ''} "
        + ", ".join(f"{name} {weight:g}" for name, weight in weights if weight)
        for tag, weights in config.weightings.items()
    ]
    head = fit_head(read_choices(Path(config.preferences))) if config.preferences else None
    return [*lines, *([f"Preference: {head}"] if head else [])]


def command(
    *,
    base: Annotated[
        str | None,
        typer.Option(
            help="Train this model: a Hugging Face folder or hub id, gguf:PATH or package:NAME. "
            "Chooses profile, gate, held-out share and lengths, prints the plan and asks."
        ),
    ] = None,
    problems: Annotated[
        list[Path] | None,
        typer.Option(
            help="With --base: a file of problems, added as a source of the home; repeatable."
        ),
    ] = None,
    yes: YesOption = False,
    profile: ProfileOption = None,
    unverified: UnverifiedOption = False,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="ppo, grpo, rloo, remax, dapo, ...; short for --set training.algorithm=NAME."
        ),
    ] = None,
    change: SetOption = None,
    show: Annotated[
        bool,
        typer.Option(
            "--show",
            help="Print the algorithm, the reward and the overrides for verl; train nothing.",
        ),
    ] = False,
    lengths: Annotated[
        str | None,
        typer.Option(
            help=(
                "Set the token limits to 99 % of prompts and completions of this dataset "
                "(clean_problems, or a parquet)."
            )
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            min=0,
            help="Train with this many seeds from the same start, without a promotion.",
        ),
    ] = 0,
    more: Annotated[
        list[str] | None,
        typer.Argument(help="Changes, as with --set.", metavar="[KEY=VALUE]..."),
    ] = None,
) -> None:
    """Train the next challenger and decide on its promotion; like `demo`, with plain output."""
    changes = [
        *(change or []),
        *(more or []),
        *([f"training.algorithm={algorithm}"] if algorithm else []),
    ]
    settings = Settings.read(profile, changes, unverified)
    console = Console(force_terminal=False)
    if base:
        from cli.train.own_base import settings_for

        if lengths:
            raise typer.BadParameter("--base measures the lengths itself: leave --lengths out")
        settings = settings_for(base, problems or (), settings, console, yes=yes)
    elif problems:
        raise typer.BadParameter(
            "--problems needs --base; without a base, `ratchet data add` adds problems"
        )
    if lengths:
        from cli.display.lengths import limits_to_train, problems_of

        limits = limits_to_train(problems_of(lengths, settings), 0.99, settings, console)
        settings = Settings.read(profile, [*limits, *settings.changes], unverified)
    if show:
        raise typer.Exit(show_algorithm(settings, Console()))
    if seeds:
        from experiments.seeds import train_seeds

        raise typer.Exit(train_seeds(seeds, settings, console))
    from pipelines.launch import demo

    raise typer.Exit(demo(settings, console, "ratchet train"))


COMMAND = Command("Train", command)
