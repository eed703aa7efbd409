"""Score a checkpoint on its profile's benchmarks, or completions on one benchmark."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.options import (
    ProfileOption,
)
from resources.settings import Settings

GROUP = "Evaluate"


class Form(StrEnum):
    auto = "auto"
    chat = "chat"
    base = "base"


def command(
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            help="Name of a checkpoint (`ratchet status` lists them) or a Hugging Face folder."
        ),
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="humaneval, humaneval+, mbpp+, ...: this one alone.")
    ] = None,
    completions: Annotated[
        Path | None,
        typer.Option(help="Answers to judge: .jsonl, .jsonl.gz, .json, or a folder of programs."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Ask this one: a Hugging Face folder or hub id; with --endpoint its name there."
        ),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="Ask an OpenAI-compatible server, up to /v1.")
    ] = None,
    n: Annotated[
        int, typer.Option("-n", min=1, help="Answers a task, with --model or --endpoint.")
    ] = 1,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="Of the draws; 0 takes the likeliest token each time.")
    ] = 0.0,
    top_p: Annotated[
        float,
        typer.Option(
            "--top-p",
            min=0.01,
            max=1.0,
            help="Draw from the likeliest tokens that have this share.",
        ),
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    form: Annotated[
        Form,
        typer.Option(
            help=(
                "base: the raw prompt and its stop words; auto: chat where the model has a chat "
                "template."
            )
        ),
    ] = Form.auto,
    data: Annotated[
        Path | None, typer.Option(help="The benchmark's own file, of whatever release.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write a verdict a sample there, as JSON lines; the scorecard lies beside."
        ),
    ] = None,
    sanitize: Annotated[
        bool,
        typer.Option(
            "--sanitize",
            help="Cut answers as evalplus.sanitize does; without it they are judged as given.",
        ),
    ] = False,
    partial: Annotated[
        bool,
        typer.Option(
            "--allow-partial",
            help="Score the tasks that have answers where others have none; stamped.",
        ),
    ] = False,
    k: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            help="pass@k for this k; may be given again. Without it 1, 10 and 100 where n allows.",
        ),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Score a checkpoint on its profile's benchmarks, or completions on one benchmark.

    With CHECKPOINT and --benchmark: that one benchmark, as the profile's `evaluation.benchmarks`
    asks it. Without --benchmark: validation, a held-out draw, and the profile's benchmarks.
    """
    if benchmark is None:
        if checkpoint is None:
            raise typer.BadParameter("give a checkpoint, or --benchmark with --completions")
        from cli.checkpoint_jobs import evaluate_checkpoint

        raise typer.Exit(evaluate_checkpoint(checkpoint, Settings.read(profile), Console()))
    if checkpoint is not None and completions is None and model is None and endpoint is None:
        from cli.checkpoint_jobs import score_benchmark

        raise typer.Exit(score_benchmark(checkpoint, benchmark, Settings.read(profile), Console()))
    if (completions is None) == (model is None and endpoint is None):
        raise typer.BadParameter(
            "--benchmark needs one of: CHECKPOINT, --completions FILE, --model or --endpoint"
        )
    from cli.evaluate_benchmark import (
        EvaluationOptions,
        ModelOptions,
        evaluate_completions,
        evaluate_model,
    )
    from cli.failures import price_of
    from problems.dataset.evidence import suspects_of

    settings, errors = Settings.read(profile), Console(stderr=True)
    home = settings.home.path
    options = EvaluationOptions(
        benchmark,
        data,
        out,
        sanitize,
        partial,
        tuple(k or ()),
        price_of(settings.profile),
        suspects_of(settings.store),
    )
    if completions is not None:
        raise typer.Exit(evaluate_completions(completions, options, home, Console(), errors))
    model_options = ModelOptions(model, endpoint, n, temperature, top_p, seed, form.value)
    raise typer.Exit(evaluate_model(model_options, options, home, Console(), errors))
