"""List, show, watch, stop and resume trainings."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption, RunArgument
from cli.display.screen import screen
from resources.settings import Settings

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def jobs_list(
    last: Annotated[int, typer.Option(min=1, help="Number of trainings, the newest.")] = 30,
    as_json: JsonOption = False,
) -> None:
    """List the newest trainings of this home."""
    from cli.jobs.show import list_jobs

    raise typer.Exit(list_jobs(Settings.read().home, screen(), last=last, as_json=as_json))


@app.command("show")
def jobs_show(run: RunArgument = None, as_json: JsonOption = False) -> None:
    """Show one training: settings, progress and reward curve."""
    from cli.jobs.show import show_job

    raise typer.Exit(show_job(run, Settings.read().home, screen(), as_json=as_json))


@app.command("logs")
def jobs_logs(
    run: RunArgument = None,
    lines: Annotated[int, typer.Option(min=1, help="Number of lines from the end.")] = 40,
) -> None:
    """Show the trainer's log."""
    from cli.jobs.show import show_logs

    raise typer.Exit(show_logs(run, lines, Settings.read().home, screen()))


@app.command("stop")
def jobs_stop(run: RunArgument = None) -> None:
    """Stop the running training; its checkpoints stay."""
    from cli.jobs.control import stop

    raise typer.Exit(stop(run, Settings.read().home, screen()))


@app.command("resume")
def jobs_resume(profile: ProfileOption = None) -> None:
    """Resume the interrupted pipeline run."""
    from cli.jobs.control import resume

    raise typer.Exit(resume(Settings.read(profile), screen()))


@app.command("watch")
def jobs_watch(run: RunArgument = None) -> None:
    """Watch a training that another process runs."""
    from cli.jobs.control import watch

    raise typer.Exit(watch(run, Settings.read().home, screen()))


@app.command("profile")
def jobs_profile(run: RunArgument = None) -> None:
    """Show where the time of a training step goes."""
    from cli.jobs.step_time import show_step_time
    from cli.lookup.runs import folder_of

    folder = folder_of(run, Settings.read().home)
    raise typer.Exit(show_step_time(run or folder.parents[1].name, folder, screen()))


@app.command("manifest")
def jobs_manifest(
    run: RunArgument = None,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster",
            help="Print the RayCluster of the profile instead.",
        ),
    ] = False,
    values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Print the values of the Helm chart for the profile instead.",
        ),
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Print the KubeRay manifest of a training, for `kubectl apply -f -`."""
    from cli.jobs.show import print_manifest

    settings = Settings.read(profile)
    raise typer.Exit(print_manifest(run, settings, screen(), cluster=cluster, values=values))


COMMAND = Command("Train", app)
