"""The commands about trainings: `ratchet jobs ...`, `plan`, `plugins`, `samples`, `draws`. Thin: each loads what it needs when it is called."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.console import Console

from cli.cli_data import ProfileOption

jobs = typer.Typer(
    help="Trainings: what runs, how far it is, its log; stop one, go on with it, watch it.",
    no_args_is_help=True,
)
RunArgument = Annotated[
    str | None, typer.Argument(help="A run, e.g. chain-0002; without it the newest.")
]
AddressOption = Annotated[
    str,
    typer.Option(
        "--address",
        help="Ask this Ray cluster (its dashboard, http://host:8265) in place of the home.",
    ),
]


@jobs.command("list")
def jobs_list(address: AddressOption = "") -> None:
    """Every training of this home."""
    if address:
        from cli.cluster_commands import list_submissions

        raise typer.Exit(list_submissions(address, Console()))
    from cli.job_commands import list_jobs

    raise typer.Exit(list_jobs(Console()))


@jobs.command("show")
def jobs_show(run: RunArgument = None) -> None:
    """One training: what it was told, how far it is, its curve."""
    from cli.job_commands import show_job

    raise typer.Exit(show_job(run, Console()))


@jobs.command("logs")
def jobs_logs(
    run: RunArgument = None,
    lines: Annotated[int, typer.Option(min=1, help="How many of the last lines.")] = 40,
    address: AddressOption = "",
) -> None:
    """The trainer's log."""
    if address:
        from cli.cluster_commands import show_submission_logs

        raise typer.Exit(show_submission_logs(address, run, lines, Console()))
    from cli.job_commands import show_logs

    raise typer.Exit(show_logs(run, lines, Console()))


@jobs.command("stop")
def jobs_stop(run: RunArgument = None, address: AddressOption = "") -> None:
    """Ends the run that trains now; what was saved is kept."""
    if address:
        from cli.cluster_commands import stop_submission

        raise typer.Exit(stop_submission(address, run, Console()))
    from cli.job_commands import stop

    raise typer.Exit(stop(run, Console()))


@jobs.command("resume")
def jobs_resume(profile: ProfileOption = None) -> None:
    """Goes on with the interrupted run."""
    from cli.job_commands import resume

    raise typer.Exit(resume(profile, Console()))


@jobs.command("watch")
def jobs_watch(run: RunArgument = None) -> None:
    """A live picture of a run that another process works on."""
    from cli.job_commands import watch

    raise typer.Exit(watch(run, Console()))


@jobs.command("profile")
def jobs_profile(run: RunArgument = None) -> None:
    """Where a training step's time goes: phases, and operations and Ray tasks where steps were traced (training.trace)."""
    from cli.job_commands import folder_of
    from cli.step_time import show_step_time

    folder = folder_of(run)
    raise typer.Exit(show_step_time(run or folder.parents[1].name, folder, Console()))


@jobs.command("manifest")
def jobs_manifest(
    run: RunArgument = None,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster",
            help="The cluster that the profile submits to, in place of one for this run.",
        ),
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """What KubeRay is given to run a training, as YAML: `ratchet jobs manifest -p cluster | kubectl apply -f -`."""
    from cli.job_commands import print_manifest

    raise typer.Exit(print_manifest(run, cluster, profile, Console()))


def samples(
    run: RunArgument = None,
    step: Annotated[int | None, typer.Option(help="Training step; without it the last.")] = None,
    worst: Annotated[
        bool, typer.Option("--worst", help="Those with the least reward first.")
    ] = False,
    best: Annotated[bool, typer.Option("--best", help="Those with the most reward first.")] = False,
    count: Annotated[int, typer.Option(min=1, help="How many.")] = 5,
) -> None:
    """What the policy wrote at a training step, with verdicts and what each part of the reward gave."""
    if worst and best:
        raise typer.BadParameter("give one of them", param_hint="--worst, --best")
    from cli.job_commands import show_samples

    raise typer.Exit(show_samples(run, step, worst, best, count, Console()))


def draws(
    run: RunArgument = None,
    step: Annotated[
        int | None,
        typer.Option(help="The problems of this training step; without it a line a step."),
    ] = None,
) -> None:
    """Which problems each training step drew, the pass rate that was expected of them, and the one that was seen."""
    from cli.job_commands import show_draws

    raise typer.Exit(show_draws(run, step, Console()))


def plan(
    gpus: Annotated[str | None, typer.Option(help="How many of which, e.g. 8xH100.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A hub id, or a folder with a config.json; without it the profile's base."
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Measure lengths: a dataset of this home (clean_problems), or a parquet in our schema."
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="With --data: a past run whose answers are measured too.")
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            help="With --data: the share of prompts and answers that the limits shall hold.",
            min=0.01,
            max=1.0,
        ),
    ] = 0.99,
    profile: ProfileOption = None,
) -> None:
    """What a training takes in memory and seconds on given GPUs, before they are rented; or how long its texts are. Exits 1 where nothing fits."""
    if data is not None:
        from cli.job_commands import folder_of
        from cli.lengths import show_lengths

        raise typer.Exit(
            show_lengths(
                data, folder_of(run) if run else None, share, model, gpus, profile, Console()
            )
        )
    if gpus is None:
        raise typer.BadParameter("give --gpus, e.g. 8xH100, or --data to measure lengths")
    from cli.plan import show_plan

    raise typer.Exit(show_plan(model, gpus, profile, Console()))


def plugins(
    profile: ProfileOption = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="E.g. training.plugins.loss=my_loss.py:loss; may be given again."
        ),
    ] = None,
) -> None:
    """Tries the parts of your own that a profile names: each loads, takes what verl gives it and does one dry step. No Ray, nothing trained."""
    if change:
        os.environ["RATCHET_SET"] = "\n".join(change)
    from cli.plugin_commands import try_plugins

    raise typer.Exit(try_plugins(profile, Console()))
