"""The command line `ratchet`. Thin: each command loads what it needs when it is called, so that help, status and judge answer at once."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.ablate import ablate
from cli.adapt import adapt
from cli.cli_agents import reviewer, solve
from cli.cli_compare import compare
from cli.cli_data import ProfileOption, data
from cli.cli_failures import failures, quality
from cli.cli_jobs import draws, jobs, plan, plugins, samples
from cli.cli_prefer import prefer
from cli.cli_registry import register as registry_commands
from cli.evaluate import evaluate
from cli.tune import tune

app = typer.Typer(
    name="ratchet",
    help="Turns programming problems into better code models, and only ever moves up.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(data, name="data")
reward = typer.Typer(
    help="Rewards: try one on known answers and hacks, or begin one of your own.",
    no_args_is_help=True,
)
app.add_typer(reward, name="reward")
app.add_typer(jobs, name="jobs")
app.add_typer(reviewer, name="reviewer")
registry_commands(app)
app.command()(failures)
app.command()(quality)
app.command()(tune)

UnverifiedOption = Annotated[
    bool,
    typer.Option(
        "--unverified",
        help="Train although the exploit battery did not pass the reward; stamped into all.",
    ),
]
CheckpointArgument = Annotated[
    str,
    typer.Argument(
        help="Name of a checkpoint (`ratchet status` lists them) or a Hugging Face folder."
    ),
]


@app.command()
def demo(profile: ProfileOption = None, unverified: UnverifiedOption = False) -> None:
    """From raw problems to a decision, watched. Run again, it goes on: with an interrupted chain where it was, else from the present champion."""
    from pipelines.launch import demo

    _allow(unverified)
    raise typer.Exit(demo(profile, Console()))


@app.command()
def train(
    profile: ProfileOption = None,
    unverified: UnverifiedOption = False,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="ppo, grpo, rloo, remax, dapo, ...; short for --set training.algorithm=NAME."
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A change to the profile, section.key=value; may be given again."
        ),
    ] = None,
    show: Annotated[
        bool,
        typer.Option(
            "--show", help="Say what the algorithm is and what verl is told, and train nothing."
        ),
    ] = False,
    lengths: Annotated[
        str | None,
        typer.Option(
            help="A dataset (clean_problems, a parquet): limits that hold 99 % of prompts and answers."
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            min=0,
            help="Train with so many seeds from the same start, and put none before the gate.",
        ),
    ] = 0,
    more: Annotated[
        list[str] | None,
        typer.Argument(help="Changes as --set takes them.", metavar="[KEY=VALUE]..."),
    ] = None,
) -> None:
    """Trains the next challenger and puts it before the gate; what `demo` does, for scripts: plain lines, no picture."""
    changes = [
        *(change or []),
        *(more or []),
        *([f"training.algorithm={algorithm}"] if algorithm else []),
    ]
    if changes:
        os.environ["RATCHET_SET"] = "\n".join(changes)
    if lengths:
        from cli.lengths import changes_to_train

        limits = changes_to_train(lengths, 0.99, profile, Console(force_terminal=False))
        os.environ["RATCHET_SET"] = "\n".join(
            [*limits, *os.environ.get("RATCHET_SET", "").splitlines()]
        )
    if show:
        from cli.algorithm import show_algorithm

        raise typer.Exit(show_algorithm(profile, Console()))
    _allow(unverified)
    if seeds:
        from experiments.seeds import train_seeds

        raise typer.Exit(train_seeds(seeds, profile, Console(force_terminal=False)))
    from pipelines.launch import demo

    raise typer.Exit(demo(profile, Console(force_terminal=False)))


@app.command()
def promote(checkpoint: CheckpointArgument, profile: ProfileOption = None) -> None:
    """Puts a checkpoint before the gate; scores it first where that has not been done. Exits 0 promoted or refused."""
    from cli.commands import promote

    raise typer.Exit(promote(checkpoint, profile, Console()))


@app.command()
def status(
    provenance: Annotated[
        bool, typer.Option("--provenance", help="Walk from the champion back to the raw problems.")
    ] = False,
) -> None:
    """Who is champion, what runs, what is stale."""
    from cli.provenance import show_champion
    from cli.status import show_status
    from resources.home import Home

    (show_champion if provenance else show_status)(Home.from_environment(), Console())


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
    add_help_option=False,
)
def judge(context: typer.Context) -> None:
    """Runs programs against tests in the sandbox; `ratchet judge --help` tells more."""
    from sandbox.judge import main

    raise typer.Exit(main(context.args))


@reward.command("verify")
def reward_verify(
    file: Annotated[
        Path | None,
        typer.Argument(help="A reward file; without it the profile's own reward is tried."),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """The exploit battery: honest answers, hacks, degenerate answers, bounds, determinism. Exits 0 passed, 1 not."""
    from cli.reward_commands import verify

    raise typer.Exit(verify(file, profile, Console()))


@reward.command("new")
def reward_new(
    task: Annotated[str, typer.Option(help="code, math or qa.")],
    output: Annotated[Path, typer.Option(help="The file to write; it must not exist.")],
) -> None:
    """Writes a reward of your own to begin with, which passes the battery as it is."""
    from cli.reward_commands import new

    raise typer.Exit(new(task, output, Console()))


@app.command()
def ui(
    port: Annotated[
        int,
        typer.Option(
            help="Where the web interface listens, on 127.0.0.1; the next free one is taken."
        ),
    ] = 3000,
    profile: ProfileOption = None,
) -> None:
    """Dagster's web interface and daemon, with sensors and schedules on."""
    from cli.ui import ui

    ui(port, profile, Console())


for command in (plan, plugins, samples, draws, solve, prefer, ablate, adapt, compare, evaluate):
    app.command()(command)


def _allow(unverified: bool) -> None:
    """The run's process reads it (resources/run_context.py)."""
    if unverified:
        os.environ["RATCHET_UNVERIFIED"] = "1"


def main() -> None:
    """Entry point. What a user can mend is one line on stderr and exit code 2; anything else is a bug and shows its traceback."""
    try:
        app()
    except Exception as error:
        from assets.verified_reward import UnverifiedReward
        from cli.explain import UnknownVersion
        from evaluation.generation.openai_client import Unanswered
        from evaluation.judging.harness import NotJudged
        from evaluation.promotion.comparison import Incomparable
        from problems.columns import ProblemError
        from problems.synthesis.replies import EndpointDown
        from resources.config.profile import ProfileError
        from resources.home import Home, NotReady
        from resources.ray.private import TrainingFailed
        from resources.registry.ledger import NothingToRollBack, Superseded
        from resources.registry.ledger_database import LedgerUnreachable
        from rewards.own import RewardFileError
        from verl_jobs.config.references import PluginError
        from verl_jobs.planner.preflight import CannotTrain
        from verl_jobs.sft.start import UnfitStart

        own = (
            RewardFileError
            | UnverifiedReward
            | PluginError
            | EndpointDown
            | Unanswered
            | Incomparable
        )
        kept = NothingToRollBack | Superseded | LedgerUnreachable | UnknownVersion | NotJudged
        trained = UnfitStart | CannotTrain | TrainingFailed
        mendable = NotReady | ProfileError | ProblemError | kept | own | trained | FileNotFoundError
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        store = type(error).__module__.startswith(
            "botocore."
        )  # an object store's own words; its package is not there without one
        if not full and not store and not isinstance(error, mendable):
            raise
        said = (
            f"storage.root: {error}: see AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"
            if store
            else error
        )
        print(f"error: {Home.from_environment().full() if full else said}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
