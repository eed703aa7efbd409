"""The command line `ratchet`. Thin: each command loads what it needs when it is called, so that help, status and judge answer at once."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    name="ratchet",
    help="Turns programming problems into better code models, and only ever moves up.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
data = typer.Typer(help="Problems: add a source, or look at what there is.", no_args_is_help=True)
app.add_typer(data, name="data")
reward = typer.Typer(help="Rewards: try one on known answers and hacks, or begin one of your own.", no_args_is_help=True)
app.add_typer(reward, name="reward")
jobs = typer.Typer(help="Trainings: what runs, how far it is, its log; stop one, go on with it, watch it.", no_args_is_help=True)
app.add_typer(jobs, name="jobs")

ProfileOption = Annotated[str | None, typer.Option("--profile", "-p", help="Name or path of a profile; else RATCHET_PROFILE, else embedded.")]
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
) -> None:
    """Trains the next challenger and puts it before the gate; what `demo` does, for scripts: plain lines, no picture."""
    changes = [*(change or []), *([f"training.algorithm={algorithm}"] if algorithm else [])]
    if changes:
        os.environ["RATCHET_SET"] = "\n".join(changes)
    if show:
        from pipelines.algorithm import show_algorithm

        raise typer.Exit(show_algorithm(profile, Console()))
    from pipelines.demo import demo

    _allow(unverified)
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


@data.command("add")
def data_add(
    name: Annotated[str, typer.Argument(help="A known source (docs/sources.md), or a name of your own.")],
    path: Annotated[Path | None, typer.Option(help="File or folder; with neither this nor --hub a known source's own dataset on the hub.")] = None,
    hub: Annotated[str | None, typer.Option(help="A dataset on the Hugging Face hub: owner/name.")] = None,
    config: Annotated[str | None, typer.Option(help="Configuration of the hub's dataset.")] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of the hub's dataset; else its main branch.")] = None,
    columns: Annotated[str, typer.Option(help="What our columns are called there: statement=prompt,solutions=answer,...")] = "",
    values: Annotated[list[str] | None, typer.Option("--set", help="A column's value in all rows: --set style=call; repeat it for more.")] = None,
) -> None:
    """Adds a source of problems; its rows are read once here, and each bad one is named."""
    from pipelines.source_commands import add

    raise typer.Exit(add(name, path, hub, config, revision, columns, values or [], Console()))


@data.command("remove")
def data_remove(name: Annotated[str, typer.Argument(help="A source that was added.")]) -> None:
    """Forgets a source of problems; its files stay, and the next run reads the others alone."""
    from pipelines.source_commands import remove

    raise typer.Exit(remove(name, Console()))


@data.command("show")
def data_show(problem: Annotated[str | None, typer.Argument(help="Id of one problem, to see it whole.")] = None) -> None:
    """The datasets there are, how many problems each stage kept and why others fell; or one problem with all that became of it."""
    from pipelines.data_commands import show

    raise typer.Exit(show(problem, Console()))


@data.command("diff")
def data_diff(
    before: Annotated[str, typer.Argument(help="previous, current, or the beginning of a dataset's content hash.")] = "previous",
    after: Annotated[str, typer.Argument(help="The same for the newer one.")] = "current",
) -> None:
    """Two versions of a dataset: what was added, removed (and why) and changed, by source."""
    from pipelines.data_commands import diff

    raise typer.Exit(diff(before, after, Console()))


@data.command("clean")
def data_clean(
    source: Annotated[str, typer.Option("--from", help="Parquet in our schema: a file or a folder, a path or a URL (s3://bucket/prefix).")],
    target: Annotated[str, typer.Option("--to", help="Folder for the result, a path or a URL; started again, it goes on there.")],
    gated: Annotated[list[Path] | None, typer.Option("--gated", help="Parquet of benchmarks that guard beside those of the set itself.")] = None,
    ray: Annotated[str, typer.Option("--ray", help="Ray cluster to spread over: host:port, or auto; without it all is done here.")] = "",
    profile: ProfileOption = None,
) -> None:
    """Verifies and curates a set too big for one memory or one machine, part by part."""
    from pipelines.data_clean import data_clean

    raise typer.Exit(data_clean(source, target, gated or [], ray, profile, Console()))


@data.command("limits")
def data_limits(
    apply: Annotated[bool, typer.Option("--apply", help="Choose the proposed limits for the next version of the data.")] = False,
) -> None:
    """Limits learned from what the reference solutions took, and what they would save."""
    from pipelines.commands import data_limits

    raise typer.Exit(data_limits(apply, Console()))


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
def plan(
    gpus: Annotated[str, typer.Option(help="How many of which, e.g. 8xH100.")],
    model: Annotated[str | None, typer.Option(help="A hub id, or a folder with a config.json; without it the profile's base.")] = None,
    profile: ProfileOption = None,
) -> None:
    """What a training takes in memory and seconds on given GPUs, before they are rented. Exits 1 where nothing fits."""
    from pipelines.plan import show_plan

    raise typer.Exit(show_plan(model, gpus, profile, Console()))


RunArgument = Annotated[str | None, typer.Argument(help="A run, e.g. chain-0002; without it the newest.")]


@jobs.command("list")
def jobs_list() -> None:
    """Every training of this home."""
    from pipelines.job_commands import list_jobs

    raise typer.Exit(list_jobs(Console()))


@jobs.command("show")
def jobs_show(run: RunArgument = None) -> None:
    """One training: what it was told, how far it is, its curve."""
    from pipelines.job_commands import show_job

    raise typer.Exit(show_job(run, Console()))


@jobs.command("logs")
def jobs_logs(run: RunArgument = None, lines: Annotated[int, typer.Option(help="How many of the last lines.")] = 40) -> None:
    """The trainer's log."""
    from pipelines.job_commands import show_logs

    raise typer.Exit(show_logs(run, lines, Console()))


@jobs.command("stop")
def jobs_stop(run: RunArgument = None) -> None:
    """Ends the run that trains now; what was saved is kept."""
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
        from problems.record import ProblemError
        from resources.home import Home, NotReady
        from resources.ledger import NothingToRollBack
        from resources.profile import ProfileError
        from rewards.own import RewardFileError

        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and not isinstance(error, NotReady | ProfileError | ProblemError | NothingToRollBack | RewardFileError | FileNotFoundError):
            raise
        print(f"error: {Home.from_environment().full() if full else error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
