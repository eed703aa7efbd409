"""Estimate memory and time of a training on given GPUs, or the lengths of its texts."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import ProfileOption, SetOption
from cli.display.screen import screen
from cli.lookup.gpus import gpus_of
from pipelines.watch.text import print_text
from resources.settings import Settings
from verl_jobs.config.algorithms import MAX_DROPPED
from verl_jobs.config.training import Training
from verl_jobs.planner.planner import RESERVE, LayoutPlan, estimate, plan
from verl_jobs.planner.shapes import GIB, shape_of

GPUS_PER_MACHINE = 8  # the usual maximum


def show_plan(model: str | None, gpus: str, settings: Settings, console: Console) -> int:
    """Print memory, seconds and settings of a training. Return 0.

    Raises DoesNotFit, ProfileError.
    """
    profile = settings.profile
    count, gpu = gpus_of(gpus)
    training = over_machines(profile.training, count)
    fit = plan(shape_of(model or profile.base), gpu, count, training)
    print_text(console, _title(fit, training))
    console.print(_memory_table(fit))
    console.print(_seconds_table(fit))
    for line in _stage_lines(fit):
        print_text(console, line)
    if training.drops_equal_groups:
        print_text(
            console,
            f"The rollout is for one batch. {training.algorithm} drops groups that are all solved "
            f"or all unsolved and samples others, up to {MAX_DROPPED} batches; the number depends "
            "on the problems.",
        )
    lines = [f"  --profile {shlex.quote(settings.profile_name)}"] if settings.chosen else []
    changes = list(settings.changes)
    changes += [f"base={model}"] if model and model != profile.base else []
    changes += ["training.engine=vllm"] if training.engine == "hf" else []  # hf is for CPUs
    nodes = training.scale.nodes
    changes += [f"training.scale.nodes={nodes}"] if nodes != profile.training.scale.nodes else []
    lines += [escape(f"  --set {shlex.quote(line)}") for line in [*changes, *fit.changes()]]
    console.print("Options for `ratchet train`:", *lines, sep="\n", soft_wrap=True, highlight=False)
    print_text(
        console,
        f"The KV caches hold {fit.concurrent:,} completions of full length at once. Assumed: "
        f"{fit.gpu.share:.0%} of the peak speed in updates, {training.scale.engine_memory:.0%} of "
        f"the memory for the engine, {RESERVE / GIB:.0f} GiB free, every completion at maximum "
        "length. Memory and seconds were compared with "
        "published runs (docs/measurements/gpu.md), not measured on these GPUs.",
        style="dim",
    )
    return 0


def _title(fit: LayoutPlan, training: Training) -> str:
    """Return model, GPUs and the size of a step in one line."""
    nodes = training.scale.nodes
    machines = f" in {nodes} machines of {fit.gpus // nodes}" if nodes > 1 else ""
    greedy = " and a greedy one" if training.method.greedy else ""
    return (
        f"[bold]{fit.shape.name}[/], {fit.shape.parameters / 1e9:.2f} billion parameters, "
        f"on {fit.gpus} x {fit.gpu.name}{machines}; a step is "
        f"{training.problems_per_step} problems x {training.group_size} completions{greedy}, "
        f"{training.prompt_tokens} + {training.response_tokens} tokens"
    )


def _memory_table(fit: LayoutPlan) -> Table:
    phases = (fit.update, fit.rollout)
    table = Table("GiB a GPU", "update", "rollout", box=None, header_style="dim")
    for name in {**fit.update, **fit.rollout}:
        cells = (f"{phase[name] / GIB:.1f}" if name in phase else "" for phase in phases)
        table.add_row(name, *cells)
    totals = (sum(phase.values()) / GIB for phase in phases)
    cells = (f"[bold]{total:.1f}[/] of {fit.gpu.memory / GIB:.0f}" for total in totals)
    table.add_row("[bold]total[/]", *cells)
    return table


def _seconds_table(fit: LayoutPlan) -> Table:
    table = Table("seconds a step", "estimated", box=None, header_style="dim")
    for name, value in fit.seconds.items():
        table.add_row(name, f"{value:.1f}")
    total = f"[bold]{sum(fit.seconds.values()):.1f}[/], {fit.tokens_per_second:,.0f} tokens/s"
    table.add_row("[bold]total[/]", total)
    return table


def _stage_lines(fit: LayoutPlan) -> list[str]:
    """Return the seconds of a step in each stage of the length curriculum."""
    lines, first = [], 1
    for stage in fit.training.answer_stages:
        shorter = fit.training.model_copy(update={"answer_tokens": stage.tokens})
        seconds = sum(estimate(fit.shape, fit.gpu, shorter).seconds.values())
        lines.append(
            f"Steps {first} to {stage.until}, at most {stage.tokens:,} tokens a completion: "
            f"{seconds:.1f} s a step."
        )
        first = stage.until + 1
    return lines


def over_machines(training: Training, gpus: int) -> Training:
    """Return the training with a number of machines: the configured one if it divides the GPUs into
    at most 8 a machine, else the smallest that does.
    """
    possible = [
        nodes
        for nodes in range(1, gpus + 1)
        if gpus % nodes == 0 and gpus // nodes <= GPUS_PER_MACHINE
    ]
    nodes = training.scale.nodes if training.scale.nodes in possible else possible[0]
    return training.model_copy(update={"scale": training.scale.model_copy(update={"nodes": nodes})})


def command(
    *,
    gpus: Annotated[
        str | None,
        typer.Option(help="Number and type of GPUs: 8xH100. Default: those of the profile."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=(
                "A hub id, a folder with a config.json, or a GGUF file (gguf:PATH, package:NAME). "
                "Default: base of the profile."
            )
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help=(
                "Measure token lengths: a dataset of this home (clean_problems), or a parquet of "
                "problems."
            )
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="With --data: also measure the completions of this run.")
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            help="With --data: share of prompts and completions within the limits.",
            min=0.01,
            max=1.0,
        ),
    ] = 0.99,
    change: SetOption = None,
    profile: ProfileOption = None,
) -> None:
    """Estimate memory and time of a training on given GPUs, or the lengths of its texts.

    Exits 1 if the training does not fit.
    """
    settings = Settings.read(profile, change or ())
    if data is not None:
        from cli.display.lengths import show_lengths
        from cli.lookup.runs import folder_of

        raise typer.Exit(
            show_lengths(
                data,
                run=folder_of(run, settings.home) if run else None,
                share=share,
                model=model,
                gpus=gpus,
                settings=settings,
                console=screen(),
            )
        )
    needs, ranks = settings.profile.needs, settings.profile.training.ranks
    if gpus is None and not needs.gpu:
        raise typer.BadParameter(
            "give --gpus, e.g. 8xH100, or --data to measure lengths: the profile names no needs.gpu"
        )
    raise typer.Exit(show_plan(model, gpus or f"{ranks}x{needs.gpu}", settings, screen()))


COMMAND = Command("Train", command)
