"""The command line `ratchet`. Thin: each command loads what it needs when it is called, so that help, status and judge answer at once."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines.cli_agents import reviewer, solve
from pipelines.cli_data import ProfileOption, data

app = typer.Typer(
    name="ratchet",
    help="Turns programming problems into better code models, and only ever moves up.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(data, name="data")
reward = typer.Typer(help="Rewards: try one on known answers and hacks, or begin one of your own.", no_args_is_help=True)
app.add_typer(reward, name="reward")
jobs = typer.Typer(help="Trainings: what runs, how far it is, its log; stop one, go on with it, watch it.", no_args_is_help=True)
app.add_typer(jobs, name="jobs")
app.add_typer(reviewer, name="reviewer")
app.command()(solve)

UnverifiedOption = Annotated[bool, typer.Option("--unverified", help="Train although the exploit battery did not pass the reward; stamped into all.")]
CheckpointArgument = Annotated[str, typer.Argument(help="Name of a checkpoint (`ratchet status` lists them) or a Hugging Face folder.")]


@app.command()
def demo(profile: ProfileOption = None, unverified: UnverifiedOption = False) -> None:
    """From raw problems to a decision, watched. Run again, it goes on: with an interrupted chain where it was, else from the present champion."""
    from pipelines.demo import demo

    _allow(unverified)
    raise typer.Exit(demo(profile, Console()))


@app.command()
def train(
    profile: ProfileOption = None,
    unverified: UnverifiedOption = False,
    algorithm: Annotated[str | None, typer.Option(help="ppo, grpo, rloo, remax, dapo, ...; short for --set training.algorithm=NAME.")] = None,
    change: Annotated[list[str] | None, typer.Option("--set", help="A change to the profile, section.key=value; may be given again.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Say what the algorithm is and what verl is told, and train nothing.")] = False,
    seeds: Annotated[int, typer.Option(min=0, help="Train with so many seeds from the same start, and put none before the gate.")] = 0,
    more: Annotated[list[str] | None, typer.Argument(help="Changes as --set takes them.", metavar="[KEY=VALUE]...")] = None,
) -> None:
    """Trains the next challenger and puts it before the gate; what `demo` does, for scripts: plain lines, no picture."""
    changes = [*(change or []), *(more or []), *([f"training.algorithm={algorithm}"] if algorithm else [])]
    if changes:
        os.environ["RATCHET_SET"] = "\n".join(changes)
    if show:
        from pipelines.algorithm import show_algorithm

        raise typer.Exit(show_algorithm(profile, Console()))
    _allow(unverified)
    if seeds:
        from pipelines.seeds import train_seeds

        raise typer.Exit(train_seeds(seeds, profile, Console(force_terminal=False)))
    from pipelines.demo import demo

    raise typer.Exit(demo(profile, Console(force_terminal=False)))


@app.command()
def evaluate(checkpoint: CheckpointArgument, profile: ProfileOption = None) -> None:
    """Scores a checkpoint on validation, a fresh held-out draw and the public benchmarks that are there."""
    from pipelines.commands import evaluate

    raise typer.Exit(evaluate(checkpoint, profile, Console()))


@app.command()
def promote(checkpoint: CheckpointArgument, profile: ProfileOption = None) -> None:
    """Puts a checkpoint before the gate; scores it first where that has not been done. Exits 0 promoted or refused."""
    from pipelines.commands import promote

    raise typer.Exit(promote(checkpoint, profile, Console()))


@app.command()
def rollback(reason: Annotated[str, typer.Option(help="Kept in the ledger.")] = "") -> None:
    """Makes the champion before this one champion again."""
    from pipelines.commands import rollback

    raise typer.Exit(rollback(reason, Console()))


@app.command()
def status(provenance: Annotated[bool, typer.Option("--provenance", help="Walk from the champion back to the raw problems.")] = False) -> None:
    """Who is champion, what runs, what is stale."""
    from pipelines.status import show_provenance, show_status
    from resources.home import Home

    (show_provenance if provenance else show_status)(Home.from_environment(), Console())


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
def judge(context: typer.Context) -> None:
    """Runs programs against tests in the sandbox; `ratchet judge --help` tells more."""
    from sandbox.judge import main

    raise typer.Exit(main(context.args))


@reward.command("verify")
def reward_verify(
    file: Annotated[Path | None, typer.Argument(help="A reward file; without it the profile's own reward is tried.")] = None,
    profile: ProfileOption = None,
) -> None:
    """The exploit battery: honest answers, hacks, degenerate answers, bounds, determinism. Exits 0 passed, 1 not."""
    from pipelines.reward_commands import verify

    raise typer.Exit(verify(file, profile, Console()))


@reward.command("new")
def reward_new(
    task: Annotated[str, typer.Option(help="code, math or qa.")],
    output: Annotated[Path, typer.Option(help="The file to write; it must not exist.")],
) -> None:
    """Writes a reward of your own to begin with, which passes the battery as it is."""
    from pipelines.reward_commands import new

    raise typer.Exit(new(task, output, Console()))


@app.command()
def plugins(
    profile: ProfileOption = None,
    change: Annotated[list[str] | None, typer.Option("--set", help="E.g. training.plugins.loss=my_loss.py:loss; may be given again.")] = None,
) -> None:
    """Tries the parts of your own that a profile names: each loads, takes what verl gives it and does one dry step. No Ray, nothing trained."""
    if change:
        os.environ["RATCHET_SET"] = "\n".join(change)
    from pipelines.plugin_commands import try_plugins

    raise typer.Exit(try_plugins(profile, Console()))


@app.command()
def plan(
    gpus: Annotated[str | None, typer.Option(help="How many of which, e.g. 8xH100.")] = None,
    model: Annotated[str | None, typer.Option(help="A hub id, or a folder with a config.json; without it the profile's base.")] = None,
    data: Annotated[str | None, typer.Option(help="Measure lengths: a dataset of this home (clean_problems), or a parquet in our schema.")] = None,
    run: Annotated[str | None, typer.Option(help="With --data: a past run whose answers are measured too.")] = None,
    share: Annotated[float, typer.Option(help="With --data: the share of prompts and answers that the limits shall hold.", min=0.01, max=1.0)] = 0.99,
    profile: ProfileOption = None,
) -> None:
    """What a training takes in memory and seconds on given GPUs, before they are rented; or how long its texts are. Exits 1 where nothing fits."""
    if data is not None:
        from pipelines.job_commands import folder_of
        from pipelines.lengths import show_lengths

        raise typer.Exit(show_lengths(data, folder_of(run) if run else None, share, model, gpus, profile, Console()))
    if gpus is None:
        raise typer.BadParameter("give --gpus, e.g. 8xH100, or --data to measure lengths")
    from pipelines.plan import show_plan

    raise typer.Exit(show_plan(model, gpus, profile, Console()))


RunArgument = Annotated[str | None, typer.Argument(help="A run, e.g. chain-0002; without it the newest.")]
AddressOption = Annotated[str, typer.Option("--address", help="Ask this Ray cluster (its dashboard, http://host:8265) in place of the home.")]


@jobs.command("list")
def jobs_list(address: AddressOption = "") -> None:
    """Every training of this home."""
    if address:
        from pipelines.cluster_commands import list_submissions

        raise typer.Exit(list_submissions(address, Console()))
    from pipelines.job_commands import list_jobs

    raise typer.Exit(list_jobs(Console()))


@jobs.command("show")
def jobs_show(run: RunArgument = None) -> None:
    """One training: what it was told, how far it is, its curve."""
    from pipelines.job_commands import show_job

    raise typer.Exit(show_job(run, Console()))


@jobs.command("logs")
def jobs_logs(
    run: RunArgument = None, lines: Annotated[int, typer.Option(help="How many of the last lines.")] = 40, address: AddressOption = ""
) -> None:
    """The trainer's log."""
    if address:
        from pipelines.cluster_commands import show_submission_logs

        raise typer.Exit(show_submission_logs(address, run, lines, Console()))
    from pipelines.job_commands import show_logs

    raise typer.Exit(show_logs(run, lines, Console()))


@jobs.command("stop")
def jobs_stop(run: RunArgument = None, address: AddressOption = "") -> None:
    """Ends the run that trains now; what was saved is kept."""
    if address:
        from pipelines.cluster_commands import stop_submission

        raise typer.Exit(stop_submission(address, run, Console()))
    from pipelines.job_commands import stop

    raise typer.Exit(stop(run, Console()))


@jobs.command("resume")
def jobs_resume(profile: ProfileOption = None) -> None:
    """Goes on with the interrupted run."""
    from pipelines.job_commands import resume

    raise typer.Exit(resume(profile, Console()))


@jobs.command("watch")
def jobs_watch(run: RunArgument = None) -> None:
    """A live picture of a run that another process works on."""
    from pipelines.job_commands import watch

    raise typer.Exit(watch(run, Console()))


@jobs.command("profile")
def jobs_profile(run: RunArgument = None) -> None:
    """Where a training step's time goes: phases, and operations and Ray tasks where steps were traced (training.trace)."""
    from pipelines.job_commands import folder_of
    from pipelines.step_time import show_step_time

    folder = folder_of(run)
    raise typer.Exit(show_step_time(run or folder.parents[1].name, folder, Console()))


@jobs.command("manifest")
def jobs_manifest(
    run: RunArgument = None,
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster that the profile submits to, in place of one for this run.")] = False,
    profile: ProfileOption = None,
) -> None:
    """What KubeRay is given to run a training, as YAML: `ratchet jobs manifest -p cluster | kubectl apply -f -`."""
    from pipelines.job_commands import print_manifest

    raise typer.Exit(print_manifest(run, cluster, profile, Console()))


@app.command()
def samples(
    run: RunArgument = None,
    step: Annotated[int | None, typer.Option(help="Training step; without it the last.")] = None,
    worst: Annotated[bool, typer.Option("--worst", help="Those with the least reward first.")] = False,
    best: Annotated[bool, typer.Option("--best", help="Those with the most reward first.")] = False,
    count: Annotated[int, typer.Option(help="How many.")] = 5,
) -> None:
    """What the policy wrote at a training step, with verdicts and what each part of the reward gave."""
    from pipelines.job_commands import show_samples

    raise typer.Exit(show_samples(run, step, worst, best, count, Console()))


@app.command()
def draws(
    run: RunArgument = None,
    step: Annotated[int | None, typer.Option(help="The problems of this training step; without it a line a step.")] = None,
) -> None:
    """Which problems each training step drew, the pass rate that was expected of them, and the one that was seen."""
    from pipelines.job_commands import show_draws

    raise typer.Exit(show_draws(run, step, Console()))


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="Where the web interface listens, on 127.0.0.1; the next free one is taken.")] = 3000,
    profile: ProfileOption = None,
) -> None:
    """Dagster's web interface and daemon, with sensors and schedules on."""
    from pipelines.ui import ui

    ui(port, profile, Console())


def _allow(unverified: bool) -> None:
    """The run's process reads it (resources/workshop.py)."""
    if unverified:
        os.environ["RATCHET_UNVERIFIED"] = "1"


def main() -> None:
    """Entry point. What a user can mend is one line on stderr and exit code 2; anything else is a bug and shows its traceback."""
    try:
        app()
    except Exception as error:
        from assets.verified_reward import UnverifiedReward
        from problems.record import ProblemError
        from resources.home import Home, NotReady
        from resources.ledger import NothingToRollBack
        from resources.profile import ProfileError
        from rewards.own import RewardFileError
        from verl_jobs.plugins import PluginError
        from verl_jobs.start import UnfitStart

        own = RewardFileError | UnverifiedReward | PluginError
        mendable = NotReady | ProfileError | ProblemError | NothingToRollBack | own | UnfitStart | FileNotFoundError
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and not isinstance(error, mendable):
            raise
        print(f"error: {Home.from_environment().full() if full else error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
