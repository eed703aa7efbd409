"""Score a checkpoint on its profile's benchmarks, or completions on one benchmark."""

from __future__ import annotations

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import ProfileOption
from cli.display.screen import screen
from cli.evaluate import options
from resources.settings import Settings


def command(
    checkpoint: options.CheckpointArgument = None,
    *,
    benchmark: options.BenchmarkOption = None,
    completions: options.CompletionsOption = None,
    model: options.ModelOption = None,
    endpoint: options.EndpointOption = None,
    n: options.NOption = 1,
    temperature: options.TemperatureOption = 0.0,
    top_p: options.TopPOption = 1.0,
    seed: options.SeedOption = 0,
    form: options.FormOption = options.Form.auto,
    data: options.DataOption = None,
    out: options.OutOption = None,
    sanitize: options.SanitizeOption = False,
    partial: options.PartialOption = False,
    k: options.KOption = None,
    profile: ProfileOption = None,
) -> None:
    """Score a checkpoint on its profile's benchmarks, or completions on one benchmark.

    With CHECKPOINT alone: on validation, a held-out draw, and the benchmarks of the profile. With
    CHECKPOINT and --benchmark: on that benchmark, with its generation settings in the profile's
    `evaluation.benchmarks`. With --benchmark and --completions, --model or --endpoint: score
    completions of a file or a model.
    """
    sources = [completions is not None, model is not None or endpoint is not None]
    if benchmark is None and checkpoint is None:
        raise typer.BadParameter("give a checkpoint, or --benchmark with --completions")
    if checkpoint is not None and (benchmark is None or not any(sources)):
        from cli.evaluate import checkpoint as jobs

        settings, console = Settings.read(profile), screen()
        if benchmark is None:
            raise typer.Exit(jobs.evaluate_checkpoint(checkpoint, settings, console))
        raise typer.Exit(jobs.score_benchmark(checkpoint, benchmark, settings, console))
    if benchmark is None or sum(sources) != 1:
        raise typer.BadParameter(
            "--benchmark needs one of: CHECKPOINT, --completions FILE, --model or --endpoint"
        )
    from cli.evaluate.completions import (
        EvaluationOptions,
        ModelOptions,
        evaluate_completions,
        evaluate_model,
    )
    from cli.failures import price_of
    from problems.dataset.evidence import suspects_of

    settings, console, errors = Settings.read(profile), screen(), Console(stderr=True)
    home, price = settings.home.path, price_of(settings.profile)
    evaluation = EvaluationOptions(
        benchmark=benchmark,
        data=data,
        out=out,
        sanitized=sanitize,
        partial=partial,
        ks=tuple(k or ()),
        price=price,
        suspects=suspects_of(settings.store),
    )
    if completions is not None:
        raise typer.Exit(evaluate_completions(completions, evaluation, home, console, errors))
    generation = ModelOptions(
        model=model,
        endpoint=endpoint,
        n=n,
        temperature=temperature,
        top_p=top_p,
        seed=seed,
        form=form.value,
    )
    raise typer.Exit(evaluate_model(generation, evaluation, home, console, errors))


COMMAND = Command("Evaluate", command)
