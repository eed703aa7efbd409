"""Estimate memory and time of a training on given GPUs, or the lengths of its texts."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cli.gpus import gpus_of
from cli.options import ProfileOption
from resources.settings import Settings
from verl_jobs.config.algorithms import MOST_DROPPED
from verl_jobs.config.training import Training
from verl_jobs.planner.planner import MFU, RESERVE, plan
from verl_jobs.planner.shapes import GIB, DoesNotFit, shape_of

GROUP = "Train"
IN_A_MACHINE = 8  # GPUs, as they are rented


def show_plan(model: str | None, gpus: str, settings: Settings, console: Console) -> int:
    """Exits 0 with a plan, 1 where none fits. Raises ProfileError."""
    profile = settings.profile
    try:
        count, gpu = gpus_of(gpus)
        t = over_machines(profile.training, count)
        fit = plan(shape_of(model or profile.base), gpu, count, t)
    except DoesNotFit as error:
        console.print(f"error: {error}", style="bold red", soft_wrap=True, highlight=False)
        return 1
    nodes = t.scale.nodes
    console.print(
        f"[bold]{fit.shape.name}[/], {fit.shape.parameters / 1e9:.2f} billion parameters, "
            f"on {count} x {gpu.name}"
        f"{f' in {nodes} machines of {count // nodes}' if nodes > 1 else ''}; a step is "
            f"{t.problems_per_step} problems x {t.group_size} answers"
        f"{' and a greedy one' if t.method.greedy else ''}, {t.prompt_tokens} + "
            f"{t.response_tokens} tokens",
        soft_wrap=True, highlight=False,
    )  # fmt: skip
    memory = Table("GiB a GPU", "while it learns", "while it writes", box=None, header_style="dim")
    for name in {**fit.update, **fit.rollout}:
        memory.add_row(
            name,
            *(
                f"{part[name] / GIB:.1f}" if name in part else ""
                for part in (fit.update, fit.rollout)
            ),
        )
    totals = (sum(part.values()) / GIB for part in (fit.update, fit.rollout))
    memory.add_row(
        "[bold]together[/]",
        *(f"[bold]{total:.1f}[/] of {gpu.memory / GIB:.0f}" for total in totals),
    )
    console.print(memory)
    seconds = Table("seconds a step", "expected", box=None, header_style="dim")
    for name, value in fit.seconds.items():
        seconds.add_row(name, f"{value:.1f}")
    seconds.add_row(
        "[bold]together[/]",
        f"[bold]{sum(fit.seconds.values()):.1f}[/], {fit.tokens_per_second:,.0f} tokens/s",
    )
    console.print(seconds)
    if t.method.drops_equal_groups:
        console.print(
            f"The rollout is that of one batch: {t.algorithm} draws groups that are all "
                f"solved or all unsolved again, until {MOST_DROPPED} batches' "
            "worth were dropped; how many they are depends on the problems.",
            soft_wrap=True, highlight=False,
        )  # fmt: skip
    named = [f"  --profile {shlex.quote(settings.profile_name)}"] if settings.chosen else []
    changes = [f"base={model}"] if model and model != profile.base else []
    changes += ["training.engine=vllm"] if t.engine == "hf" else []  # which is for CPUs
    changes += [f"training.scale.nodes={nodes}"] if nodes != profile.training.scale.nodes else []
    lines = (escape(f"  --set {shlex.quote(line)}") for line in [*changes, *fit.changes()])
    console.print("to `ratchet train`", *named, *lines, sep="\n", soft_wrap=True, highlight=False)
    console.print(
        f"The caches hold {fit.concurrent:,} answers of full length at once. Assumed: "
            f"{MFU:.0%} of the peak while learning, "
        f"{t.scale.engine_memory:.0%} of the memory for the engine, {RESERVE / GIB:.0f} GiB "
            "free. The memory of an update was checked "
        "against torch on a CPU; the seconds were not measured on this hardware.",
        style="dim", soft_wrap=True, highlight=False,
    )  # fmt: skip
    return 0


def over_machines(training: Training, gpus: int) -> Training:
    """Return the training over as many machines as configured if these GPUs divide among them with
    at most 8 each, else over the fewest possible.
    """
    fair = [
        nodes for nodes in range(1, gpus + 1) if gpus % nodes == 0 and gpus // nodes <= IN_A_MACHINE
    ]
    nodes = training.scale.nodes if training.scale.nodes in fair else fair[0]
    return training.model_copy(update={"scale": training.scale.model_copy(update={"nodes": nodes})})


def command(
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
            help=(
                "Measure lengths: a dataset of this home (clean_problems), or a parquet in our "
                "schema."
            )
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
    """Estimate memory and time of a training on given GPUs, or the lengths of its texts.

    Exits 1 if nothing fits.
    """
    if data is not None:
        from cli.lengths import show_lengths
        from cli.runs import folder_of

        raise typer.Exit(
            show_lengths(
                data,
                folder_of(run, Settings.read().home) if run else None,
                share,
                model,
                gpus,
                Settings.read(profile),
                Console(),
            )
        )
    if gpus is None:
        raise typer.BadParameter("give --gpus, e.g. 8xH100, or --data to measure lengths")

    raise typer.Exit(show_plan(model, gpus, Settings.read(profile), Console()))
